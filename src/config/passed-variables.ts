import type { Environment } from './variables.ts'

/** The variables whose names match one of the patterns of `passEnv`, for every process the gateway starts. */
export const passedVariables = (patterns: readonly string[] | undefined, env: Environment): Record<string, string> => {
  const passed: Record<string, string> = {}
  const matchers = (patterns ?? []).map(matcherOf)
  if (matchers.length === 0) return passed
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !name.includes('=') && matchers.some(matches => matches(name))) passed[name] = value
  return passed
}

const matcherOf = (pattern: string): ((name: string) => boolean) => {
  const parts = pattern.split('*').map(part => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(`^${parts.join('.*')}$`, process.platform === 'win32' ? 'i' : '')
  return name => expression.test(name)
}
