import type { ConfigPath } from './json-text.ts'
import type { ConfigReport } from './problems.ts'
import { type Environment, fillIn } from './variables.ts'

/** A section of the file with the variables of all its texts filled in; what is missing is reported. */
export const fillInSection = (value: unknown, env: Environment, path: ConfigPath, report: ConfigReport): unknown => {
  if (typeof value === 'string') {
    const filled = fillIn(value, env)
    if (filled.kind === 'text') return filled.text
    report.problems.push({ path, message: filled.reason })
    return undefined
  }
  if (Array.isArray(value)) return value.map((member, at) => fillInSection(member, env, [...path, at], report))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, fillInSection(member, env, [...path, key], report)]),
  )
}
