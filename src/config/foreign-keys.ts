/** An entry with the keys of this gateway, and what is lost of the keys of another client. */
export interface AdaptedEntry {
  readonly entry: unknown
  readonly warnings: readonly string[]
}

/** Keys of other clients that mean the same as one of ours. */
const SAME_MEANING: Readonly<Record<string, string>> = {
  serverUrl: 'url', // Windsurf
  transport: 'type', // Cline, LangChain
  transportType: 'type', // Cline, before 2026
  excludeTools: 'disabledTools', // Gemini CLI
  includeTools: 'enabledTools',
  disabled_tools: 'disabledTools', // Codex
  enabled_tools: 'enabledTools',
  http_headers: 'headers',
}

const CONFIRMATION = 'the client asks before a tool is called, not the gateway'
const AUTHORIZATION = 'the gateway uses "oauth", or a token in "headers" or "credentials"'

/** Keys of other clients that have no meaning here, and why. */
const WITHOUT_MEANING: Readonly<Record<string, string>> = {
  autoApprove: CONFIRMATION, // Cline, Kiro
  alwaysAllow: CONFIRMATION, // Roo Code
  trust: CONFIRMATION, // Gemini CLI
  auth: AUTHORIZATION, // Cursor
  authProviderType: AUTHORIZATION, // Gemini CLI
  headersHelper: AUTHORIZATION, // Claude Code
}

/** Renames the keys of other clients to ours where they mean the same, and says which others have no effect. */
export const adaptEntry = (raw: unknown): AdaptedEntry => {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return { entry: raw, warnings: [] }
  const entry: Record<string, unknown> = {}
  const warnings: string[] = []
  for (const [key, value] of Object.entries(raw)) {
    const ours = Object.hasOwn(SAME_MEANING, key) ? SAME_MEANING[key] : undefined
    const cursor = key === 'auth' && !Object.hasOwn(raw, 'oauth') ? fromCursorAuth(value) : undefined
    const reason = Object.hasOwn(WITHOUT_MEANING, key) ? WITHOUT_MEANING[key] : undefined
    if (ours !== undefined && Object.hasOwn(raw, ours)) warnings.push(`has "${ours}" and "${key}"; "${ours}" is used`)
    else if (ours !== undefined) entry[ours] = value
    else if (key === 'enabled' && typeof value === 'boolean' && !Object.hasOwn(raw, 'disabled')) entry.disabled = !value
    else if (cursor !== undefined) entry.oauth = cursor
    else if (reason === undefined) entry[key] = value
    else if (!isEmpty(value)) warnings.push(`"${key}" is ignored: ${reason}`)
  }
  return { entry, warnings: [...warnings, ...unfilledWarnings(entry)] }
}

/** Cursor writes a client that is registered at the authorization server as `auth`. */
const fromCursorAuth = (value: unknown): object | undefined => {
  if (typeof value !== 'object' || value === null || !('CLIENT_ID' in value)) return undefined
  const { CLIENT_ID: clientId, CLIENT_SECRET: clientSecret, ...rest } = value as Record<string, unknown>
  return { clientId, ...(clientSecret !== undefined && { clientSecret }), ...rest }
}

const isEmpty = (value: unknown): boolean =>
  value === false || value === null || (typeof value === 'object' && Object.keys(value).length === 0)

/** Gemini CLI fills in `$NAME`, too; here it is passed as written, which is rarely meant. */
const unfilledWarnings = (entry: Readonly<Record<string, unknown>>): string[] =>
  ['env', 'headers'].flatMap(key => {
    const values = entry[key]
    if (typeof values !== 'object' || values === null) return []
    return Object.entries(values).flatMap(([name, value]) => {
      const variable = /^(?:Bearer )?\$([A-Za-z_]\w*)$/.exec(String(value))?.[1]
      return variable === undefined ? [] : `${key}.${name} is passed as written; to fill it in, write \${${variable}}`
    })
  })

/** `"command": "npx -y x"`: what to write instead; undefined for a command without arguments in it. */
export const commandHint = (command: string, args: readonly string[]): string | undefined => {
  const [program = '', ...words] = command.trim().split(/\s+/)
  if (words.length === 0 || !/^[\w.@+-]+$/.test(program)) return undefined
  const split = JSON.stringify([...words, ...args]).replaceAll(',', ', ')
  return `is taken for the name of one program; write "command": "${program}", "args": ${split}`
}
