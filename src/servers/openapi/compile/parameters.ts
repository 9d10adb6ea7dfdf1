import { isJsonType } from '../media-types.ts'
import type { CompileSettings, ParameterPlace, ParameterPlan, ParameterStyle, ValueStyle } from '../plan.ts'
import type { ApiDocument, LocatedPart } from './api-document.ts'
import type { ApiOperation } from './operations.ts'
import type { SchemaWriter } from './schema-writer.ts'
import { isApiObject, memberOf, memberPairs, textMember } from './shape.ts'
import type { ArgumentNames } from './tool-names.ts'

/** One argument of a tool. */
export interface ToolArgument {
  readonly name: string
  readonly schema: Record<string, unknown> | boolean
  readonly isRequired: boolean
}

const DEFAULT_STYLES: Readonly<Record<ParameterPlace, ParameterStyle>> = {
  path: 'simple',
  header: 'simple',
  query: 'form',
  cookie: 'form',
}
const STYLES: ReadonlySet<string> = new Set([
  ...['simple', 'label', 'matrix', 'form', 'spaceDelimited', 'pipeDelimited', 'tabDelimited', 'deepObject'],
])

/** Headers that OpenAPI describes elsewhere, or that the gateway writes itself. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'authorization', 'content-length', 'host', 'connection', 'transfer-encoding', 'cookie'],
  ...['expect', 'te', 'trailer', 'upgrade', 'keep-alive', 'proxy-authorization', 'user-agent'],
])

/** The style of a parameter or of a member of a form. */
export const styleOfValue = (value: unknown, fallback: ParameterStyle): ValueStyle => {
  const given = textMember(value, 'style')
  const style = given !== undefined && STYLES.has(given) ? (given as ParameterStyle) : fallback
  const explode = memberOf(value, 'explode')
  return {
    style,
    explode: typeof explode === 'boolean' ? explode : style === 'form' || style === 'deepObject',
    ...(memberOf(value, 'allowReserved') === true && { allowReserved: true }),
  }
}

/** The parameters of an operation as arguments, and how each is sent. Throws BrokenReference or SchemaTooLarge. */
export const readParameters = (
  document: ApiDocument,
  operation: ApiOperation,
  settings: Pick<CompileSettings, 'setHeaders' | 'setQuery'>,
  { writer, names }: { readonly writer: SchemaWriter; readonly names: ArgumentNames },
): { readonly plans: ParameterPlan[]; readonly args: ToolArgument[] } => {
  const plans: ParameterPlan[] = []
  const args: ToolArgument[] = []
  for (const parameter of [...operation.parameters, ...undeclaredIn(operation)]) {
    const name = textMember(parameter.value, 'name')
    const place = textMember(parameter.value, 'in') as ParameterPlace
    if (name === undefined || !(place in DEFAULT_STYLES) || isSetElsewhere(name, place, settings)) continue
    const argument = names.take(name, place)
    const schema = writer.write(schemaPart(document, parameter))
    plans.push({
      argument,
      name,
      place,
      ...styleOfValue(parameter.value, DEFAULT_STYLES[place]),
      ...(contentOf(document, parameter) && { isJson: isJsonContent(parameter.value) }),
    })
    args.push({
      name: argument,
      schema: withDescription(schema, textMember(parameter.value, 'description')),
      isRequired: place === 'path' || memberOf(parameter.value, 'required') === true,
    })
  }
  return { plans, args }
}

const isSetElsewhere = (
  name: string,
  place: ParameterPlace,
  { setHeaders, setQuery }: Pick<CompileSettings, 'setHeaders' | 'setQuery'>,
): boolean => {
  const lower = name.toLowerCase()
  if (place === 'header') return RESERVED_HEADERS.has(lower) || setHeaders.includes(lower)
  return place === 'query' && setQuery.includes(name)
}

/** `{id}` in a path without a parameter of that name: many documents forget it. */
const undeclaredIn = ({ path, parameters, base }: ApiOperation): LocatedPart[] => {
  const declared = new Set(
    parameters.flatMap(({ value }) => (memberOf(value, 'in') === 'path' ? [memberOf(value, 'name')] : [])),
  )
  const names = [...path.matchAll(/\{([^{}]+)\}/g)].map(match => match[1] ?? '')
  return [...new Set(names)]
    .filter(name => !declared.has(name))
    .map(name => ({ base, value: { name, in: 'path', required: true, schema: { type: 'string' } } }))
}

/** `content` instead of `schema`: the value is written in that media type. */
const contentOf = (document: ApiDocument, { value, base }: LocatedPart): LocatedPart | undefined => {
  const [first] = memberPairs(memberOf(value, 'content'))
  return first && document.follow({ value: first[1], base })
}

const isJsonContent = (value: unknown): boolean => {
  const [first] = memberPairs(memberOf(value, 'content'))
  return first !== undefined && isJsonType(first[0])
}

const schemaPart = (document: ApiDocument, parameter: LocatedPart): LocatedPart => {
  const { value, base } = contentOf(document, parameter) ?? parameter
  return { value: memberOf(value, 'schema') ?? {}, base }
}

/** The parameter's description says more than that of a schema which many share. */
export const withDescription = (
  schema: Record<string, unknown> | boolean,
  description: string | undefined,
): Record<string, unknown> | boolean =>
  isApiObject(schema) && description !== undefined && description !== '' ? { ...schema, description } : schema
