// Compares what is sent now with what was recorded. Pure.

/** One place where two values differ. */
export interface JsonDifference {
  readonly path: string // `content[0].text`
  readonly expected: string // as JSON, cut
  readonly found: string
}

const REDACTED = '[redacted]'
const MOST = 20 // differences
const LONGEST = 120 // characters of a value that is shown

/** Members that tell about the gateway or the time, not about the answer. */
const IGNORED: ReadonlySet<string> = new Set(['_meta', 'resultType', 'ttlMs', 'cacheScope', 'requestState'])

/** The places where a value differs from the recorded one. What was redacted or shortened there matches anything. */
export const compareJson = (expected: unknown, found: unknown): readonly JsonDifference[] => {
  const differences: JsonDifference[] = []
  compare(expected, found, '', differences)
  return differences
}

/** Whether a value is the recorded one. */
export const isSameJson = (expected: unknown, found: unknown): boolean => compareJson(expected, found).length === 0

const compare = (expected: unknown, found: unknown, path: string, differences: JsonDifference[]): void => {
  if (differences.length >= MOST || isWildcard(expected, found)) return
  if (Array.isArray(expected) && Array.isArray(found)) {
    const length = Math.max(expected.length, found.length)
    for (let at = 0; at < length; at++) compare(expected[at], found[at], `${path}[${at}]`, differences)
  } else if (isPlainObject(expected) && isPlainObject(found)) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(found)])) {
      const member = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
      if (!IGNORED.has(name))
        compare(expected[name], found[name], path === '' ? member : `${path}.${member}`, differences)
    }
  } else if (expected !== found)
    differences.push({ path: path || '(all)', expected: show(expected), found: show(found) })
}

/** A text with redacted parts matches every text with the same other parts. */
const isWildcard = (expected: unknown, found: unknown): boolean => {
  if (expected === REDACTED) return true
  if (typeof expected !== 'string' || typeof found !== 'string') return false
  if (expected.endsWith('…') && found.startsWith(expected.slice(0, -1))) return true
  if (!expected.includes(REDACTED)) return false
  let at = 0
  for (const part of expected.split(REDACTED)) {
    const next = found.indexOf(part, at)
    if (next < 0) return false
    at = next + part.length
  }
  return true
}

const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const show = (value: unknown): string => {
  const text = value === undefined ? '(absent)' : JSON.stringify(value)
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}
