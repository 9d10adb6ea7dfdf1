import type { Json } from './json.ts'

/** What Json.of takes: plain data, with Json values anywhere inside; undefined members are left out. */
export type Plain = Json | string | number | boolean | null | readonly Plain[] | PlainObject
export interface PlainObject {
  readonly [key: string]: Plain | undefined
}

/** The bytes of plain data; Json values inside are copied as they are. */
export const buildJson = (value: Exclude<Plain, Json>): Buffer => {
  if (value === null || typeof value !== 'object') return Buffer.from(JSON.stringify(value))
  const pieces: (string | Buffer)[] = []
  append(value, pieces)
  if (pieces.every(piece => typeof piece === 'string')) return Buffer.from(pieces.join(''))
  return Buffer.concat(pieces.map(piece => (typeof piece === 'string' ? Buffer.from(piece) : piece)))
}

const append = (value: Plain, pieces: (string | Buffer)[]): void => {
  if (value === null || typeof value !== 'object') pieces.push(JSON.stringify(value) ?? 'null')
  else if (isJson(value)) value.appendTo(pieces as Buffer[])
  else if (Array.isArray(value)) appendList(value as readonly Plain[], pieces)
  else appendObject(value as PlainObject, pieces)
}

const appendList = (values: readonly Plain[], pieces: (string | Buffer)[]): void => {
  pieces.push('[')
  values.forEach((value, i) => {
    if (i > 0) pieces.push(',')
    append(value, pieces)
  })
  pieces.push(']')
}

const appendObject = (object: PlainObject, pieces: (string | Buffer)[]): void => {
  let separator = '{'
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue
    pieces.push(`${separator}${JSON.stringify(key)}:`)
    separator = ','
    append(value, pieces)
  }
  pieces.push(separator === '{' ? '{}' : '}')
}

/** By shape: importing the class would make a cycle. */
const isJson = (value: object): value is Json => 'appendTo' in value && typeof value.appendTo === 'function'
