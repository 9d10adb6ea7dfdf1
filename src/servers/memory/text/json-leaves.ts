const MOST_LEAVES = 10_000
const MOST_DEPTH = 64

/** `userName` and `user_name` are read as words. */
const wordsOfKey = (key: string): string => key.replace(/[_-]+/g, ' ').replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ')

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

/** The name by which a reader would call an object, said again with each of its leaves. */
const titleOf = (value: object): string | undefined => {
  const named = ['name', 'title', 'id', 'key'].map(key => (value as Readonly<Record<string, unknown>>)[key])
  const title = named.find(found => typeof found === 'string' && found !== '' && found.length <= 80)
  return typeof title === 'string' ? title : undefined
}

/** The scalars of one object or array, on one line, and what lies deeper, apart. */
const walk = (value: unknown, path: readonly string[], lines: string[]): void => {
  if (lines.length >= MOST_LEAVES || value === null || value === undefined) return
  if (isScalar(value)) {
    lines.push([path.join(' '), String(value)].filter(part => part !== '').join(': '))
    return
  }
  if (path.length > MOST_DEPTH) {
    lines.push(`${path.slice(0, 8).join(' ')}: ${JSON.stringify(value)}`)
    return
  }
  if (Array.isArray(value)) {
    const scalars = value.filter(isScalar)
    if (scalars.length > 0) lines.push([path.join(' '), scalars.join(', ')].filter(part => part !== '').join(': '))
    for (const item of value) if (!isScalar(item)) walk(item, path, lines)
    return
  }
  const title = titleOf(value as object)
  const here = title === undefined || path.includes(title) ? path : [...path, title]
  for (const [key, item] of Object.entries(value as object)) walk(item, [...here, wordsOfKey(key)], lines)
}

/** Every leaf of a JSON text as a line of its own, `path: value`; nothing if it is not JSON. */
export const leavesOf = (content: string): string[] | undefined => {
  try {
    const lines: string[] = []
    walk(JSON.parse(content), [], lines)
    return lines
  } catch {
    return undefined
  }
}
