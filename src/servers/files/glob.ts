/** One step of a pattern: the characters it takes, once or any number of times. */
type Step =
  | { readonly kind: 'one'; readonly takes: (char: string) => boolean }
  | { readonly kind: 'many'; readonly takes: (char: string) => boolean }
  | { readonly kind: 'folders' } // `**/`: any number of whole segments, none included

/** Whether a path (with slashes) matches a pattern. */
export type Glob = (path: string) => boolean

const MAX_ALTERNATIVES = 100
const MAX_LENGTH = 1000

/**
 * Reads a glob: `*` and `?` stay within a segment, `**` does not, `[a-z]`, `[!a]`, `{a,b}`; a pattern without a slash
 * matches the last segment alone. All states are tracked at once, so matching costs at most the length of the pattern
 * times that of the path. Throws an Error if the pattern is invalid.
 */
export const readGlob = (pattern: string): Glob => {
  if (pattern === '') throw new Error('The pattern is empty')
  if (pattern.length > MAX_LENGTH) throw new Error(`The pattern is longer than ${MAX_LENGTH} characters`)
  const whole = pattern.replace(/^\.?\//, '')
  const alternatives = expand(whole.includes('/') ? whole : `**/${whole}`).map(stepsOf)
  return path => alternatives.some(steps => matches(steps, path))
}

/** `a{b,c}` as `ab` and `ac`. */
const expand = (pattern: string): string[] => {
  const found = /\{([^{}]*,[^{}]*)\}/.exec(pattern)
  if (!found) return [pattern]
  const [group, inner = ''] = found
  const [head, tail] = [pattern.slice(0, found.index), pattern.slice(found.index + group.length)]
  const alternatives = inner.split(',').flatMap(part => expand(head + part + tail))
  if (alternatives.length > MAX_ALTERNATIVES)
    throw new Error(`The pattern has more than ${MAX_ALTERNATIVES} alternatives`)
  return alternatives
}

const isAny = (): boolean => true
const isInSegment = (char: string): boolean => char !== '/'
const TOKEN = /\*\*\/|\*+|\?|\[!?\]?[^\]]*\]|\\.|./gsu

const stepsOf = (pattern: string): Step[] =>
  (pattern.match(TOKEN) ?? []).map(token => {
    if (token === '**/') return { kind: 'folders' }
    if (token === '?') return { kind: 'one', takes: isInSegment }
    if (token.startsWith('*')) return { kind: 'many', takes: token === '*' ? isInSegment : isAny }
    if (token.startsWith('[') && token.length > 1) return { kind: 'one', takes: classOf(token.slice(1, -1)) }
    const literal = token.length > 1 && token.startsWith('\\') ? token.slice(1) : token
    return { kind: 'one', takes: char => char === literal }
  })

const classOf = (body: string): ((char: string) => boolean) => {
  const isNegated = body.startsWith('!') || body.startsWith('^')
  const ranges = [...(isNegated ? body.slice(1) : body).matchAll(/(.)-(.)|(.)/gsu)].map(
    ([, from, to, only]) => [from ?? only ?? '', to ?? only ?? ''] as const,
  )
  return char => char !== '/' && ranges.some(([from, to]) => char >= from && char <= to) !== isNegated
}

const matches = (steps: readonly Step[], path: string): boolean => {
  let states = withEmptySteps(steps, new Set([0]), true)
  for (const char of path) {
    const next = new Set<number>()
    for (const at of states) {
      const step = steps[at]
      if (step?.kind === 'folders' || (step?.kind === 'many' && step.takes(char))) next.add(at)
      else if (step?.kind === 'one' && step.takes(char)) next.add(at + 1)
    }
    states = withEmptySteps(steps, next, char === '/')
    if (states.size === 0) return false
  }
  return states.has(steps.length)
}

/** Adds the states reached without taking a character; `**` + `/` is left only where a segment begins. */
const withEmptySteps = (steps: readonly Step[], states: Set<number>, isSegmentStart: boolean): Set<number> => {
  for (const at of states) {
    const step = steps[at]
    if (step?.kind === 'many' || (step?.kind === 'folders' && isSegmentStart)) states.add(at + 1)
  }
  return states
}
