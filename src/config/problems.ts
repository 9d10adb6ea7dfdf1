import type { ConfigPath, TextPlace } from './json-text.ts'

/** One error in a configuration, and its place. */
export interface ConfigProblem {
  readonly path: ConfigPath
  readonly message: string
}

/** The same, with its place in the text if there is one. */
export interface PlacedProblem extends ConfigProblem, Partial<TextPlace> {}

/** What the reader of a configuration collects: problems make the file invalid, warnings do not. */
export interface ConfigReport {
  readonly problems: ConfigProblem[]
  readonly warnings: string[]
}

/** The configuration cannot be used. The message lists every problem and contains no secrets. */
export class ConfigError extends Error {
  readonly problems: readonly PlacedProblem[] // what the message lists, if it is about a file
  constructor(message: string, problems: readonly PlacedProblem[] = []) {
    super(message)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** A path as users write it: `mcpServers.github.url`. */
export const formatPath = (path: ConfigPath): string =>
  path
    .map(step => (typeof step === 'string' && /^[\w$-]+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`))
    .join('')
    .replace(/^\./, '')

/** Problems in the order of the text. */
export const placeProblems = (
  problems: readonly ConfigProblem[],
  placeOf: (path: ConfigPath) => TextPlace | undefined,
): PlacedProblem[] =>
  problems.map(problem => ({ ...problem, ...placeOf(problem.path) })).sort((a, b) => (a.line ?? 0) - (b.line ?? 0))

/** All problems as one text, one per line, each with its line in the file. */
export const formatProblems = (file: string, problems: readonly PlacedProblem[]): string => {
  const lines = problems.map(
    ({ line, path, message }) =>
      `  ${line === undefined ? '' : `line ${line}: `}${path.length > 0 ? `${formatPath(path)}: ` : ''}${message}`,
  )
  return [`${file} has ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}:`, ...lines].join('\n')
}

/** Names in quotes, for a message. */
export const quoteAll = (names: Iterable<string>): string => [...names].map(name => JSON.stringify(name)).join(', ')

const MANY = 8

/** Some of the names, for a warning that must stay one line. */
export const quoteSome = (names: readonly string[]): string =>
  quoteAll(names.slice(0, MANY)) + (names.length > MANY ? ` and ${names.length - MANY} more` : '')

/** `did you mean "x"?`, or the accepted names; `otherwise` if there are none. */
export const suggest = (name: string, accepted: Iterable<string>, otherwise = ''): string => {
  const names = [...accepted]
  const meant = nearest(name, names)
  if (meant !== undefined) return `did you mean ${JSON.stringify(meant)}?`
  return names.length > 0 ? `expected one of ${quoteAll(names)}` : otherwise
}

/** Other programs keep settings in the same file, so unknown keys are ignored; only likely typing errors get a warning each. */
export const unknownKeyWarnings = (unknown: readonly string[], intendedFor: (key: string) => string | undefined) => {
  const foreign = unknown.filter(key => intendedFor(key) === undefined)
  const misspelt = unknown.filter(key => intendedFor(key) !== undefined)
  const warnings = misspelt.map(key => `unknown key "${key}" is ignored; did you mean "${intendedFor(key)}"?`)
  return foreign.length > 0 ? [...warnings, `ignored keys that are not ours: ${quoteSome(foreign)}`] : warnings
}

/** The accepted name that is most similar, if one is similar enough to be meant. */
export const nearest = (name: string, accepted: Iterable<string>): string | undefined => {
  const wanted = name.toLowerCase()
  const maxDistance = Math.min(2, Math.floor(name.length / 3))
  const near = [...accepted]
    .map(candidate => ({ candidate, distance: editDistance(wanted, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
  return near.sort((a, b) => a.distance - b.distance)[0]?.candidate
}

/** Damerau-Levenshtein distance (optimal string alignment). */
const editDistance = (from: string, to: string): number => {
  let older: number[] = []
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = (previous[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const swap = swapped ? (older[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, change, swap))
    }
    older = previous
    previous = row
  }
  return previous[to.length] ?? 0
}
