// Reads members of a document whose shape is not known yet.

export type ApiObject = Readonly<Record<string, unknown>>

export const isApiObject = (value: unknown): value is ApiObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A member of an object; undefined if it is no object, or has no such member of its own. */
export const memberOf = (value: unknown, key: string): unknown =>
  isApiObject(value) && Object.hasOwn(value, key) ? value[key] : undefined

export const textMember = (value: unknown, key: string): string | undefined => {
  const member = memberOf(value, key)
  return typeof member === 'string' ? member : undefined
}

export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const textItems = (value: unknown): readonly string[] => itemsOf(value).filter(item => typeof item === 'string')

export const memberPairs = (value: unknown): readonly (readonly [string, unknown])[] =>
  isApiObject(value) ? Object.entries(value) : []
