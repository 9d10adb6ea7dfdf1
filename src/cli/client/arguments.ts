import { readFile } from 'node:fs/promises'
import { nearest } from '../../config/problems.ts'
import { parametersOf, requiredOf, resolveSchema } from '../../protocol/schema-text.ts'
import { Json } from '../../wire/json/json.ts'
import { isList, kindProblem, typeValue } from './typed-values.ts'
import type { ArgumentWord } from './words.ts'

/** The arguments cannot be sent; the message says why. */
export class ArgumentError extends Error {}

/** Reads files and stdin. */
export interface ArgumentReader {
  readStdin(): Promise<string>
}

/** The arguments of a call, typed by the schema; throws ArgumentError. */
export const buildArguments = async (
  words: readonly ArgumentWord[],
  schema: Json,
  reader: ArgumentReader,
): Promise<Json> => {
  let args = Json.empty
  for (const word of words) args = await addWord(args, word, schema, reader)
  checkRequired(args, schema)
  return args
}

const addWord = async (args: Json, word: ArgumentWord, schema: Json, reader: ArgumentReader): Promise<Json> => {
  if (word.kind === 'all') {
    const where = word.file === '-' ? 'stdin' : word.file
    const text = word.file === '-' ? await reader.readStdin() : await readText(word.file, `@${word.file}`)
    return addObject(args, parseJson(text, where), where)
  }
  if (word.kind === 'object') return addObject(args, parseJson(word.text, 'the argument {…}'), 'the argument {…}')
  const path = pathOf(word.key, schema)
  const target = schemaAt(path, schema)
  if (word.kind === 'json') return setJson(args, path, parseJson(word.text, `${word.key}:=`), target, schema)
  if (word.kind === 'text') return setText(args, path, word.text, target, schema)
  const quoting = `a text that begins with @ is written ${word.key}:='"@…"'`
  const text = await readText(word.file, `${word.key}=@${word.file}`, quoting)
  if (word.isJson) return setJson(args, path, parseJson(text, word.file), target, schema)
  return setText(args, path, text, target, schema)
}

const addObject = (args: Json, object: Json, where: string): Json => {
  if (!object.isObject)
    throw new ArgumentError(`${where}: expected a JSON object with the arguments, got ${object.kind}`)
  return object.entries().reduce((merged, [key, value]) => merged.with(key, value), args)
}

const readText = async (file: string, word: string, hint?: string): Promise<string> => {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'there is no such file' : message
    throw new ArgumentError(`${word}: ${why}${hint ? `; ${hint}` : ''}`)
  }
}

const parseJson = (text: string, where: string): Json => {
  try {
    return Json.parse(Buffer.from(text))
  } catch (error) {
    const quoted = `text is written with = alone, or in quotes: ${where}'"text"'`
    const hint = where.endsWith(':=') ? `; ${quoted}` : ''
    throw new ArgumentError(`${where} is not valid JSON: ${(error as Error).message}${hint}`)
  }
}

const setText = (args: Json, path: readonly string[], text: string, schema: Json | undefined, root: Json): Json => {
  const before = args.at(...path)
  const isJsonList = /^\s*\[/.test(text)
  if (isList(schema, root) && !isJsonList) {
    const items = before?.kind === 'array' ? before.elements() : []
    return setAt(args, path, Json.of([...items, typed(text, path, resolveSchema(schema, root)?.get('items'), root)]))
  }
  if (before) throw new ArgumentError(`${path.join('.')} is given twice, and it is not a list`)
  return setAt(args, path, typed(text, path, schema, root))
}

const typed = (text: string, path: readonly string[], schema: Json | undefined, root: Json): Json => {
  const result = typeValue(text, schema, root)
  if ('value' in result) return result.value
  throw new ArgumentError(`${path.join('.')}: ${result.problem}`)
}

const setJson = (args: Json, path: readonly string[], value: Json, schema: Json | undefined, root: Json): Json => {
  const problem = kindProblem(value, schema, root)
  if (problem) throw new ArgumentError(`${path.join('.')}: ${problem}`)
  return setAt(args, path, value)
}

const setAt = (object: Json, [key = '', ...rest]: readonly string[], value: Json): Json => {
  if (rest.length === 0) return object.with(key, value)
  const inner = object.get(key)
  return object.with(key, setAt(inner?.isObject ? inner : Json.empty, rest, value))
}

/** `a.b` is a member of an object, unless the schema has a property of that very name. */
const pathOf = (key: string, schema: Json): readonly string[] => {
  const known = schema.get('properties')
  const [first = ''] = key.split('.')
  return known?.has(key) || !known?.has(first) ? [key] : key.split('.')
}

const schemaAt = (path: readonly string[], root: Json): Json | undefined => {
  let schema: Json | undefined = root
  for (const [depth, key] of path.entries()) {
    const properties: Json | undefined = resolveSchema(schema, root)?.get('properties')
    const found: Json | undefined = properties?.get(key)
    if (!found && properties && isClosed(resolveSchema(schema, root)))
      throw unknownArgument(path.slice(0, depth + 1), properties)
    schema = found
  }
  return schema
}

/** Schemas often leave `additionalProperties` out, and mean that there are no others: a wrong name is likely a slip. */
const isClosed = (schema: Json | undefined): boolean => {
  const others = schema?.get('additionalProperties')
  return !schema?.has('patternProperties') && (others === undefined || others.asBoolean() === false)
}

const unknownArgument = (path: readonly string[], properties: Json): ArgumentError => {
  const names = properties.entries().map(([name]) => name)
  const meant = nearest(path.at(-1) ?? '', names)
  const hint = meant === undefined ? '' : `; did you mean ${[...path.slice(0, -1), meant].join('.')}?`
  return new ArgumentError(`there is no argument ${path.join('.')}${hint}`)
}

const checkRequired = (args: Json, schema: Json): void => {
  const missing = [...requiredOf(schema)].filter(name => !args.has(name))
  if (missing.length === 0) return
  const parameters = parametersOf(schema).filter(({ name }) => missing.includes(name))
  const about = parameters.flatMap(each => {
    const description = each.schema.get('description')?.asString()
    return description === undefined ? [] : [`  ${each.name}: ${description.split('\n')[0]}`]
  })
  throw new ArgumentError([`missing ${missing.join(', ')}`, ...about].join('\n'))
}
