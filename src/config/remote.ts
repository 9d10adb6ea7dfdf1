import type { ConfigPath } from './json-text.ts'
import { divide, type Ends, personalOf, placeFault, readCredentials, readTemplate, type Template } from './personal.ts'
import { formatPath, type Problem } from './problems.ts'
import type { ServerEntry } from './schema.ts'
import type { RemoteServer, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn, hasReference } from './variables.ts'

/** What was found on the way through an entry. */
export interface Findings {
  readonly problems: Problem[]
  readonly warnings: string[]
}

/** The address of an entry and the key it stood under; `httpUrl` is the more exact of the two. */
export const addressOf = (entry: ServerEntry): { key: 'url' | 'httpUrl'; text: string } | undefined => {
  if (entry.httpUrl !== undefined) return { key: 'httpUrl', text: entry.httpUrl }
  return entry.url === undefined ? undefined : { key: 'url', text: entry.url }
}

/** Headers that describe the connection or the message: the gateway writes them itself. */
const OURS = new Set(
  `accept connection content-length content-type expect host keep-alive last-event-id mcp-method mcp-name
  mcp-protocol-version mcp-session-id te trailer transfer-encoding upgrade`.split(/\s+/),
)

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what HTTP forbids
const NOT_IN_HEADERS = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/

/** Why a text cannot be sent as the value of a header. */
export const headerFault = (value: string): string | undefined =>
  NOT_IN_HEADERS.test(value) ? 'holds a character that cannot be sent in an HTTP header' : undefined

const urlFault = (url: string): string | undefined => {
  const parsed = URL.parse(url)
  if (!parsed) return 'not a valid URL; expected something like "https://example.com/mcp"'
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return 'expected a URL with http:// or https://'
  return parsed.username || parsed.password ? 'credentials do not belong in a URL; use "headers"' : undefined
}

/** Reads a remote server; what the file got wrong is a problem, what the environment lacks makes it unavailable. */
export const readRemote = (
  entry: ServerEntry,
  path: ConfigPath,
  env: Environment,
  found: Findings,
): RemoteServer | UnavailableServer => {
  const readText = (text: string, at: ConfigPath, faultOf: Fault, lacking: string[], ends = WHOLE): string => {
    const where = formatPath(at.slice(path.length))
    const filled = fillIn(text, env)
    if (filled.kind === 'missing') {
      lacking.push(`${where}: ${filled.reason}`)
      return ''
    }
    const value = trim(filled.text, ends) // a secret out of a file often ends with a line break
    const fault = faultOf(value)
    if (fault && hasReference(text)) lacking.push(`${where}, with its variables filled in: ${fault}`)
    else if (fault) found.problems.push({ path: at, message: fault })
    return value
  }

  const readHeader = (text: string, at: ConfigPath, lacking: string[]): Template => {
    const fault = placeFault(text)
    if (fault) found.problems.push({ path: at, message: fault })
    return fault ? [] : readTemplate(text, (piece, ends) => readText(piece, at, headerFault, lacking, ends))
  }

  const readHeaders = (
    given: Readonly<Record<string, string>>,
    at: ConfigPath,
    lacking: string[],
  ): Record<string, Template> => {
    const headers: Record<string, Template> = {}
    for (const [name, text] of Object.entries(given)) {
      const here = [...at, name]
      if (!HEADER_NAME.test(name)) found.problems.push({ path: here, message: 'not a valid HTTP header name' })
      else if (OURS.has(name.toLowerCase()))
        found.warnings.push(`${formatPath(here)}: ignored, the gateway sets it itself`)
      else headers[name.toLowerCase()] = readHeader(text, here, lacking)
    }
    return headers
  }

  const { key, text } = addressOf(entry) ?? { key: 'url' as const, text: '' }
  const lacking: string[] = []
  const url = readText(text, [...path, key], urlFault, lacking)
  const { plain: headers, values } = divide(readHeaders(entry.headers ?? {}, [...path, 'headers'], lacking))
  const credentials = readCredentials(entry, path, { member: 'headers', found, read: readHeaders })
  if (entry.type === 'sse' && entry.era === 'modern')
    found.problems.push({ path: [...path, 'era'], message: 'type "sse" is older than the modern era; leave one out' })
  if (lacking.length > 0) return { kind: 'unavailable', reason: lacking.join('; ') }
  const { era, timeout: timeoutMs, allowCrossOriginEndpoint, allowCrossOriginRedirect, pool } = entry
  const crossing = {
    ...(allowCrossOriginEndpoint && { allowCrossOriginEndpoint }),
    ...(allowCrossOriginRedirect && { allowCrossOriginRedirect }),
  }
  const personal = personalOf(values, credentials)
  return { kind: 'remote', url, type: typeOf(entry, key), headers, era, timeoutMs, pool, ...personal, ...crossing }
}

type Fault = (text: string) => string | undefined

const WHOLE: Ends = { isFirst: true, isLast: true }

/** Only at the ends: beside a place a blank is a blank. */
const trim = (text: string, { isFirst, isLast }: Ends): string => {
  const begun = isFirst ? text.trimStart() : text
  return isLast ? begun.trimEnd() : begun
}

const typeOf = ({ type }: ServerEntry, key: 'url' | 'httpUrl'): RemoteServer['type'] => {
  if (type === 'sse') return 'sse'
  return type !== undefined || key === 'httpUrl' ? 'http' : 'auto'
}
