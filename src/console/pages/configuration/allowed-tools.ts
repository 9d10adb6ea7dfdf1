import type { ConfigObject } from '../../../admin/api/config.ts'

const objectIn = (value: unknown): ConfigObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ConfigObject) : {}

/** The globs of the tools that a workspace allows; undefined: all. */
export const allowedTools = ({ policy }: ConfigObject): readonly string[] | undefined => {
  const { tools } = objectIn(objectIn(policy).allow)
  return Array.isArray(tools) ? tools.filter(each => typeof each === 'string') : undefined
}

/** The entry with that list of allowed tools; everything else of its policy stays. */
export const withAllowedTools = (entry: ConfigObject, tools: readonly string[]): ConfigObject => {
  const policy = objectIn(entry.policy)
  return { ...entry, policy: { ...policy, allow: { ...objectIn(policy.allow), tools: [...tools] } } }
}

/** Whether a list of globs names a tool. */
export const isToolAllowed = (globs: readonly string[] | undefined, path: string): boolean =>
  globs === undefined || globs.some(glob => matchesGlob(glob.split('*'), path))

/** Each part after the other, the first at the start and the last at the end: `*` stands for what is between them. */
const matchesGlob = (parts: readonly string[], text: string): boolean => {
  const [first = '', ...rest] = parts
  if (!text.startsWith(first)) return false
  if (rest.length === 0) return text === first
  const last = rest.pop() ?? ''
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
