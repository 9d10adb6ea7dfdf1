/** One step of a pattern: what it takes, and whether it may take it again. */
type Step =
  | { readonly kind: 'one'; readonly takes: (char: string) => boolean }
  | { readonly kind: 'many'; readonly takes: (char: string) => boolean }
  | { readonly kind: 'folders' } // `**/`: any number of whole segments, none included

/** Whether a path (with slashes) fits a pattern. */
export type Glob = (path: string) => boolean

const MOST_BRANCHES = 100
const LONGEST = 1000

/**
 * Reads a glob: `*` and `?` stay within a segment, `**` does not, `[a-z]`, `[!a]`, `{a,b}`; a pattern without a slash is
 * about the last segment alone. Every step is tried on all its paths at once, so that no pattern can take more than its
 * length times that of the path. Throws an Error that says what is wrong.
 */
export const readGlob = (pattern: string): Glob => {
  if (pattern === '') throw new Error('The pattern is empty')
  if (pattern.length > LONGEST) throw new Error(`The pattern is longer than ${LONGEST} characters`)
  const whole = pattern.replace(/^\.?\//, '')
  const ways = expand(whole.includes('/') ? whole : `**/${whole}`).map(stepsOf)
  return path => ways.some(steps => fits(steps, path))
}

/** `a{b,c}` as `ab` and `ac`. */
const expand = (pattern: string): string[] => {
  const found = /\{([^{}]*,[^{}]*)\}/.exec(pattern)
  if (!found) return [pattern]
  const [group, inner = ''] = found
  const [head, tail] = [pattern.slice(0, found.index), pattern.slice(found.index + group.length)]
  const ways = inner.split(',').flatMap(part => expand(head + part + tail))
  if (ways.length > MOST_BRANCHES) throw new Error(`The pattern has more than ${MOST_BRANCHES} alternatives`)
  return ways
}

const isAny = (): boolean => true
const isWithin = (char: string): boolean => char !== '/'
const TOKEN = /\*\*\/|\*+|\?|\[!?\]?[^\]]*\]|\\.|./gsu

const stepsOf = (pattern: string): Step[] =>
  (pattern.match(TOKEN) ?? []).map(token => {
    if (token === '**/') return { kind: 'folders' }
    if (token === '?') return { kind: 'one', takes: isWithin }
    if (token.startsWith('*')) return { kind: 'many', takes: token === '*' ? isWithin : isAny }
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

const fits = (steps: readonly Step[], path: string): boolean => {
  let states = settle(steps, new Set([0]), true)
  for (const char of path) {
    const next = new Set<number>()
    for (const at of states) {
      const step = steps[at]
      if (step?.kind === 'folders' || (step?.kind === 'many' && step.takes(char))) next.add(at)
      else if (step?.kind === 'one' && step.takes(char)) next.add(at + 1)
    }
    states = settle(steps, next, char === '/')
    if (states.size === 0) return false
  }
  return states.has(steps.length)
}

/** Adds where one can get without taking anything; `**` + `/` is left only where a segment begins. */
const settle = (steps: readonly Step[], states: Set<number>, isSegmentStart: boolean): Set<number> => {
  for (const at of states) {
    const step = steps[at]
    if (step?.kind === 'many' || (step?.kind === 'folders' && isSegmentStart)) states.add(at + 1)
  }
  return states
}
