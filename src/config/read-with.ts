import * as z from 'zod'
import type { ConfigPath } from './json-text.ts'
import { type ConfigProblem, type ConfigReport, suggest } from './problems.ts'

// Apart from problems.ts: only what reads a configuration needs the library of schemas, which takes long to load.

type Issue = z.core.$ZodIssue

/** The problems that a schema found below `base`. */
const schemaProblems = (error: z.ZodError, base: ConfigPath, schema: z.ZodType): ConfigProblem[] =>
  error.issues.flatMap(withinUnion).flatMap(issue => {
    const within = issue.path as (string | number)[]
    const path = [...base, ...within]
    if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
    const accepted = keysAt(schema, within)
    return issue.keys.map(key => {
      const hint = suggest(key, accepted)
      return { path: [...path, key], message: hint ? `unknown key; ${hint}` : 'unknown key' }
    })
  })

/** Of a value that may have several forms: what is wrong with the only form that it has; else that it has none. */
const withinUnion = (issue: Issue): Issue[] => {
  if (issue.code !== 'invalid_union') return [issue]
  const isInside = ({ path, code }: Issue): boolean => path.length > 0 || code === 'unrecognized_keys'
  const [only, ...others] = issue.errors.filter(issues => issues.every(isInside))
  if (!only || others.length > 0) return [issue]
  return only.flatMap(withinUnion).map(inner => ({ ...inner, path: [...issue.path, ...inner.path] }))
}

/** Checks a value against a schema; undefined if it has problems, which are added to the report. */
export const readWith = <S extends z.ZodType>(
  schema: S,
  raw: unknown,
  path: ConfigPath,
  report: ConfigReport,
): z.output<S> | undefined => {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  report.problems.push(...schemaProblems(parsed.error, path, schema))
  return undefined
}

/** The keys that a schema accepts at a path; none for types without fixed keys. */
const keysAt = (schema: unknown, [step, ...rest]: ConfigPath): readonly string[] => {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault)
    return keysAt(schema.unwrap(), step === undefined ? [] : [step, ...rest])
  if (schema instanceof z.ZodPipe) return keysAt(schema.in, step === undefined ? [] : [step, ...rest])
  if (schema instanceof z.ZodArray) return step === undefined ? [] : keysAt(schema.element, rest)
  if (schema instanceof z.ZodUnion)
    return schema.options.flatMap(option => keysAt(option, step === undefined ? [] : [step, ...rest]))
  if (schema instanceof z.ZodObject)
    return step === undefined ? Object.keys(schema.shape) : keysAt(schema.shape[step], rest)
  return schema instanceof z.ZodRecord && step !== undefined ? keysAt(schema.valueType, rest) : []
}
