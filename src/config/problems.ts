import { z } from 'zod'
import type { ConfigPath } from './json-text.ts'

/** One thing wrong with a configuration, and where. */
export interface Problem {
  readonly path: ConfigPath
  readonly message: string
}

/** The configuration cannot be used; the message lists everything that is wrong with it, and no secrets. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

/** A path as a person writes it: `mcpServers.github.url`. */
export const formatPath = (path: ConfigPath): string =>
  path
    .map(step => (typeof step === 'string' && /^[\w$-]+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`))
    .join('')
    .replace(/^\./, '')

/** Every problem as one text, a line each, with the line of the file it is on. */
export const formatProblems = (
  file: string,
  problems: readonly Problem[],
  lineOf: (path: ConfigPath) => number | undefined,
): string => {
  const lines = problems
    .map(problem => ({ ...problem, line: lineOf(problem.path) }))
    .sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .map(
      ({ line, path, message }) =>
        `  ${line === undefined ? '' : `line ${line}: `}${path.length > 0 ? `${formatPath(path)}: ` : ''}${message}`,
    )
  return [`${file} has ${lines.length === 1 ? 'a problem' : `${lines.length} problems`}:`, ...lines].join('\n')
}

const strangers = (base: ConfigPath, keys: readonly string[], accepted: readonly string[]): Problem[] =>
  keys.map(key => {
    const meant = nearest(key, accepted)
    const list = accepted.length > 0 ? `; expected one of ${quoteAll(accepted)}` : ''
    return { path: [...base, key], message: `unknown key${meant ? `; did you mean ${JSON.stringify(meant)}?` : list}` }
  })

/** What the schema found wrong below `base`, one problem each. */
export const schemaProblems = (error: z.ZodError, base: ConfigPath, schema: z.ZodType): Problem[] =>
  error.issues.flatMap(issue => {
    const within = issue.path as (string | number)[]
    const path = [...base, ...within]
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
    return strangers(path, issue.keys, keysAt(schema, within))
  })

/** The keys a schema knows at a place; none where it cannot be told. */
const keysAt = (schema: unknown, [step, ...rest]: ConfigPath): readonly string[] => {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return keysAt(schema.unwrap(), step === undefined ? [] : [step, ...rest])
  if (schema instanceof z.ZodObject)
    return step === undefined ? Object.keys(schema.shape) : keysAt(schema.shape[step], rest)
  return schema instanceof z.ZodRecord && step !== undefined ? keysAt(schema.valueType, rest) : []
}

/** Names in quotes, for a message. */
export const quoteAll = (names: Iterable<string>): string => [...names].map(name => JSON.stringify(name)).join(', ')

const MANY = 8

/** The first of many names, for a warning that must stay one line. */
export const quoteSome = (names: readonly string[]): string =>
  quoteAll(names.slice(0, MANY)) + (names.length > MANY ? ` and ${names.length - MANY} more` : '')

/** The accepted name somebody probably meant, if one is near enough. */
export const nearest = (name: string, accepted: Iterable<string>): string | undefined => {
  const wanted = name.toLowerCase()
  const reach = Math.min(2, Math.floor(name.length / 3))
  const near = [...accepted]
    .map(candidate => ({ candidate, distance: editDistance(wanted, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= reach)
  return near.sort((a, b) => a.distance - b.distance)[0]?.candidate
}

/** Letters to add, drop, change or swap with their neighbour to get from one word to the other. */
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
