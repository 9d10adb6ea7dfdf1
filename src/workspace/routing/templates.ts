/** A URI template turned around: whether it could have made a URI. */
export interface Matcher {
  readonly literals: number // characters that are not in expressions: the more, the nearer the template
  matches(uri: string): boolean
}

/** One step through a URI: a character that must be there, or a run of characters of one kind. */
type Step =
  | { readonly kind: 'one'; readonly character: string }
  | { readonly kind: 'run'; readonly stops: string; readonly least: 0 | 1; readonly first?: string }

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g
const LONGEST = 8192 // characters of a URI that is looked at

/** Which characters a value cannot have, by operator; what may be left out begins with its own character if it is there. */
const RUNS: Readonly<Record<string, Step>> = {
  '': { kind: 'run', stops: '/?#', least: 1 },
  '+': { kind: 'run', stops: '', least: 1 },
  '#': { kind: 'run', stops: '', least: 0, first: '#' },
  '.': { kind: 'run', stops: '/?#', least: 0, first: '.' },
  '/': { kind: 'run', stops: '?#', least: 0, first: '/' },
  ';': { kind: 'run', stops: '/?#', least: 0, first: ';' },
  '?': { kind: 'run', stops: '#', least: 0, first: '?' },
  '&': { kind: 'run', stops: '#', least: 0, first: '&' },
}

/** Makes the matcher of a template of RFC 6570. Values are not looked at, so a URI of many readings costs no more. */
export const compileTemplate = (template: string): Matcher => {
  const steps: Step[] = []
  let [end, literals] = [0, 0]
  const literally = (text: string): void => {
    literals += text.length
    for (const character of text) steps.push({ kind: 'one', character })
  }
  for (const found of template.matchAll(EXPRESSION)) {
    literally(template.slice(end, found.index))
    steps.push(RUNS[found[1] ?? ''] as Step)
    end = found.index + found[0].length
  }
  literally(template.slice(end))
  const head = template.slice(0, Math.max(0, template.search(EXPRESSION)))
  return { literals, matches: uri => uri.length <= LONGEST && uri.startsWith(head) && walk(steps, uri) }
}

/**
 * All readings at once, a character at a time: `here[i]` is true where the first i steps can have made what was read,
 * `inside[i]` where step i is a run that goes on.
 */
const walk = (steps: readonly Step[], uri: string): boolean => {
  let here = skipped(steps, new Set([0]))
  let inside = new Set<number>()
  for (const character of uri) {
    const [next, within] = [new Set<number>(), new Set<number>()]
    for (const i of here) enter(steps[i], i, character, next, within)
    for (const i of inside) if (goesOn(steps[i], character)) within.add(i)
    for (const i of within) next.add(i + 1)
    here = skipped(steps, next)
    inside = within
    if (here.size === 0) return false
  }
  return here.has(steps.length)
}

const enter = (step: Step | undefined, i: number, character: string, next: Set<number>, within: Set<number>): void => {
  if (step?.kind === 'one' && step.character === character) next.add(i + 1)
  if (step?.kind === 'run' && (step.first === undefined ? goesOn(step, character) : step.first === character))
    within.add(i)
}

const goesOn = (step: Step | undefined, character: string): boolean =>
  step?.kind === 'run' && !step.stops.includes(character)

/** Adds what is reached by leaving out what may be left out. */
const skipped = (steps: readonly Step[], reached: Set<number>): Set<number> => {
  for (const i of reached) {
    const step = steps[i]
    if (step?.kind === 'run' && step.least === 0) reached.add(i + 1) // a set goes on with what is added to it
  }
  return reached
}

/** Of those that match, the one with the most literal characters; the first of equals. */
export const closest = <T extends { readonly matcher: Matcher }>(
  candidates: readonly T[],
  uri: string,
): T | undefined => {
  let best: T | undefined
  for (const candidate of candidates)
    if ((!best || candidate.matcher.literals > best.matcher.literals) && candidate.matcher.matches(uri))
      best = candidate
  return best
}
