import {
  choicesOf,
  type Parameter,
  parametersOf,
  signatureOf,
  textOfValue,
  typesOf,
  typeText,
} from '../../protocol/schema-text.ts'
import { Json } from '../../wire/json/json.ts'
import { columns } from '../usage.ts'
import type { Client } from './client-command.ts'
import { type Item, labelOf } from './items.ts'
import type { TargetSource } from './sources.ts'
import { safeLine, safeText, styleOf } from './terminal.ts'

/** The input schema of a tool; a tool without one takes no arguments. */
export const inputSchemaOf = ({ definition }: Item): Json => definition.get('inputSchema') ?? Json.empty

export const toolSignature = (tool: Item): string => safeLine(signatureOf(labelOf(tool), inputSchemaOf(tool)))

/** A tool as people read it. */
export const describeTool = (tool: Item, { terminal, sources }: Client): string => {
  const { bold, dim } = styleOf(terminal.output, terminal.env)
  const { definition } = tool
  const schema = inputSchemaOf(tool)
  const parameters = parametersOf(schema)
  const output = definition.get('outputSchema')
  const parts = [
    bold(toolSignature(tool)),
    safeText(definition.get('description')?.asString() ?? definition.get('title')?.asString() ?? '').trim(),
    parameters.length > 0 ? columns(parameters.map(each => [safeLine(each.name), parameterText(each, schema)])) : '',
    output ? `Returns ${safeLine(typeText(output, output))}` : '',
    hintsOf(definition.get('annotations')),
    `${dim('Example:')} dragoman call ${exampleWords(tool, sources.all[0]).map(quoteWord).join(' ')}`,
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}

const parameterText = ({ schema, isRequired }: Parameter, root: Json): string => {
  const fallback = schema.get('default')
  const about = schema.get('description')?.asString() ?? schema.get('title')?.asString() ?? ''
  const need = isRequired ? 'required' : fallback ? `default ${fallback}` : 'optional'
  return safeLine(`${typeText(schema, root)}, ${need}${about === '' ? '' : `: ${about}`}`)
}

const HINTS: readonly (readonly [member: string, value: boolean, words: string])[] = [
  ['readOnlyHint', true, 'reads only'],
  ['destructiveHint', true, 'may destroy something'],
  ['idempotentHint', true, 'may be repeated'],
  ['openWorldHint', true, 'reaches beyond its server'],
]

const hintsOf = (annotations: Json | undefined): string => {
  const found = HINTS.filter(([member, value]) => annotations?.get(member)?.asBoolean() === value).map(
    ([, , words]) => words,
  )
  return found.length > 0 ? `The server says: ${found.join(', ')}.` : ''
}

/** The words of a call with the required arguments, or with the first if none is required. */
const exampleWords = (tool: Item, source: TargetSource | undefined): string[] => {
  const all = parametersOf(inputSchemaOf(tool))
  const required = all.filter(({ isRequired }) => isRequired)
  const call = [labelOf(tool), ...(required.length > 0 ? required : all.slice(0, 1)).map(exampleWord)]
  if (source?.connection.kind !== 'server' || source.servers.length > 0) return call
  const { config } = source.connection
  if (config.kind === 'process') return [...call, '--', config.command, ...config.args]
  return config.kind === 'remote' ? [config.url, ...call] : call
}

const EXAMPLES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: '1',
  number: '1.5',
  boolean: 'true',
  null: 'null',
}

const exampleWord = ({ name, schema }: Parameter): string => {
  const given = schema.get('default') ?? schema.get('examples')?.elements()[0] ?? choicesOf(schema)?.[0]?.value
  if (given)
    return given.kind === 'object' || given.kind === 'array' ? `${name}:=${given}` : `${name}=${textOfValue(given)}`
  const type = typesOf(schema)[0] ?? 'string'
  if (type === 'object') return `${name}:={}`
  if (type === 'array')
    return `${name}=${EXAMPLES[typesOf(schema.get('items') ?? Json.empty)[0] ?? 'string'] ?? 'text'}`
  return `${name}=${EXAMPLES[type] ?? 'text'}`
}

/** Quotes a word for a shell where that is necessary. */
const quoteWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${safeLine(word).replaceAll("'", "'\\''")}'`
