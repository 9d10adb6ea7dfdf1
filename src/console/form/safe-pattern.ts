const LONGEST_TEXT = 1000
const MOST_LOOPS = 3 // unbounded repetitions that may be tried one inside the work of the other

/**
 * Whether a text matches a pattern of a server; undefined if that is not checked here. Patterns that may take very long (a
 * repeated group with repetitions or alternatives in it) would stop the page, so they are left to the server.
 */
export const testPattern = (pattern: string, text: string): boolean | undefined => {
  if (text.length > LONGEST_TEXT || isSlow(pattern)) return undefined
  const compiled = compile(pattern)
  return compiled?.test(text)
}

const cache = new Map<string, RegExp | undefined>()

const compile = (pattern: string): RegExp | undefined => {
  if (cache.has(pattern)) return cache.get(pattern)
  if (cache.size > 500) cache.clear()
  const compiled = tryFlags(pattern, 'u') ?? tryFlags(pattern, '')
  cache.set(pattern, compiled)
  return compiled
}

const tryFlags = (pattern: string, flags: string): RegExp | undefined => {
  try {
    return new RegExp(pattern, flags)
  } catch {
    return undefined // a dialect that this browser does not read
  }
}

/** Finds repeated groups that contain repetitions or alternatives, many unbounded repetitions, and references. */
const isSlow = (pattern: string): boolean => {
  const groups: boolean[] = [] // for each open group: whether it has a repetition or an alternative
  let loops = 0
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]
    if (character === '\\') {
      if (/[1-9k]/.test(pattern[at + 1] ?? '')) return true // what a reference costs is not known
      at++
    } else if (character === '[') at = endOfClass(pattern, at)
    else if (character === '(') groups.push(false)
    else if (character === ')') {
      const isComplex = groups.pop() ?? false
      const isRepeated = /^(?:[*+]|\{\d*,?\d*\})/.test(pattern.slice(at + 1))
      if (isComplex && isRepeated) return true
      if (isComplex && groups.length > 0) groups[groups.length - 1] = true
    } else if (character === '|' || isLoop(pattern, at)) {
      if (character !== '|') loops++
      if (groups.length > 0) groups[groups.length - 1] = true
    }
  }
  return loops > MOST_LOOPS && hasAdjacentLoops(pattern)
}

const isLoop = (pattern: string, at: number): boolean =>
  pattern[at] === '*' || pattern[at] === '+' || (pattern[at] === '{' && /^\{\d+,\d*\}/.test(pattern.slice(at)))

/** Repetitions with nothing between them that ends the first: `\d*\d*`, `.*.*`. */
const hasAdjacentLoops = (pattern: string): boolean =>
  /(?:\\\w|\.|\])[*+]\??\(?(?:\\\w|\.|\[[^\]]*\])[*+]/.test(pattern)

const endOfClass = (pattern: string, from: number): number => {
  for (let at = from + 1; at < pattern.length; at++) {
    if (pattern[at] === '\\') at++
    else if (pattern[at] === ']' && at > from + 1) return at
  }
  return pattern.length
}
