import { HEADER_NAME, headerValueError } from '../std/header-text.ts'
import {
  type CallerTemplate,
  type CallerValues,
  type PieceEnds,
  placeholderError,
  readCallerValues,
  readTemplate,
  splitByCaller,
} from './caller-values.ts'
import type { ConfigPath } from './json-text.ts'
import { type ConfigReport, formatPath } from './problems.ts'
import type { ServerEntry } from './schema.ts'
import { readOAuth } from './server-oauth.ts'
import type { RemoteServer, ServerOAuth, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn, hasReference } from './variables.ts'

/** The address of an entry and its key; `httpUrl` is the more exact of the two. */
export const addressOf = (entry: ServerEntry): { key: 'url' | 'httpUrl'; text: string } | undefined => {
  if (entry.httpUrl !== undefined) return { key: 'httpUrl', text: entry.httpUrl }
  return entry.url === undefined ? undefined : { key: 'url', text: entry.url }
}

/** Headers about the connection or the message, which the gateway sets itself. */
const RESERVED_HEADERS = new Set(
  `accept connection content-length content-type expect host keep-alive last-event-id mcp-method mcp-name
  mcp-protocol-version mcp-session-id te trailer transfer-encoding upgrade`.split(/\s+/),
)

const urlError = (url: string): string | undefined => {
  const parsed = URL.parse(url)
  if (!parsed) return 'not a valid URL; expected something like "https://example.com/mcp"'
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') return 'expected a URL with http:// or https://'
  return parsed.username || parsed.password ? 'credentials do not belong in a URL; use "headers"' : undefined
}

type Validate = (text: string) => string | undefined

const BOTH_ENDS: PieceEnds = { isFirst: true, isLast: true }

/** Trims the ends of the whole text only: a blank beside a placeholder is part of the value. */
const trim = (text: string, { isFirst, isLast }: PieceEnds): string => {
  const trimmed = isFirst ? text.trimStart() : text
  return isLast ? trimmed.trimEnd() : trimmed
}

/** Reads a remote server. An error in the file is a problem; a missing variable makes the server unavailable. */
export const readRemote = (
  entry: ServerEntry,
  path: ConfigPath,
  env: Environment,
  report: ConfigReport,
  address?: { readonly at: ConfigPath; readonly text: string }, // instead of that of the entry
): RemoteServer | UnavailableServer => {
  const readText = (text: string, at: ConfigPath, validate: Validate, missing: string[], ends = BOTH_ENDS): string => {
    const where = formatPath(at.slice(path.length))
    const filled = fillIn(text, env)
    if (filled.kind === 'missing') {
      missing.push(`${where}: ${filled.reason}`)
      return ''
    }
    const value = trim(filled.text, ends) // a secret from a file often ends with a line break
    const error = validate(value)
    if (error && hasReference(text)) missing.push(`${where}, with its variables filled in: ${error}`)
    else if (error) report.problems.push({ path: at, message: error })
    return value
  }

  const readHeader = (text: string, at: ConfigPath, missing: string[]): CallerTemplate => {
    const error = placeholderError(text)
    if (error) report.problems.push({ path: at, message: error })
    return error ? [] : readTemplate(text, (piece, ends) => readText(piece, at, headerValueError, missing, ends))
  }

  const readHeaders = (
    given: Readonly<Record<string, string>>,
    at: ConfigPath,
    missing: string[],
  ): Record<string, CallerTemplate> => {
    const headers: Record<string, CallerTemplate> = {}
    for (const [name, text] of Object.entries(given)) {
      const here = [...at, name]
      if (!HEADER_NAME.test(name)) report.problems.push({ path: here, message: 'not a valid HTTP header name' })
      else if (RESERVED_HEADERS.has(name.toLowerCase()))
        report.warnings.push(`${formatPath(here)}: ignored, the gateway sets it itself`)
      else headers[name.toLowerCase()] = readHeader(text, here, missing)
    }
    return headers
  }

  const { key, text } = addressOf(entry) ?? { key: 'url' as const, text: '' }
  const missing: string[] = []
  const url = readText(address?.text ?? text, address?.at ?? [...path, key], urlError, missing)
  const { shared: headers, values } = splitByCaller(readHeaders(entry.headers ?? {}, [...path, 'headers'], missing))
  const personal = readCallerValues(values, entry, path, { member: 'headers', report, read: readHeaders })
  if (entry.type === 'sse' && entry.era === 'modern')
    report.problems.push({ path: [...path, 'era'], message: 'type "sse" is older than the modern era; leave one out' })
  const readLogin = (): ServerOAuth | false | undefined => {
    const at = [...path, 'oauth']
    const given = entry.oauth ? readOAuth(entry.oauth, { env, path: at, missing }, report) : entry.oauth
    if (!hasAuthorization(headers, personal.personal)) return given
    if (given)
      report.warnings.push(`${formatPath(at)}: ignored, because the "Authorization" header is configured already`)
    return false
  }
  const oauth = readLogin()
  if (missing.length > 0) return { kind: 'unavailable', reason: missing.join('; ') }
  const { era, timeout: timeoutMs, allowCrossOriginEndpoint, allowCrossOriginRedirect, pool } = entry
  const crossOrigin = {
    ...(allowCrossOriginEndpoint && { allowCrossOriginEndpoint }),
    ...(allowCrossOriginRedirect && { allowCrossOriginRedirect }),
  }
  return {
    kind: 'remote',
    url,
    type: typeOf(entry, key),
    headers,
    era,
    timeoutMs,
    pool,
    ...(oauth !== undefined && { oauth }),
    ...personal,
    ...crossOrigin,
  }
}

/** True if an Authorization header is sent, at least for some callers: a login would contradict it. */
const hasAuthorization = (headers: Readonly<Record<string, string>>, personal: CallerValues | undefined): boolean =>
  [
    headers,
    personal?.values ?? {},
    ...Object.values(personal?.credentials ?? {}).map(each => (each.kind === 'values' ? each.values : {})),
  ].some(some => Object.hasOwn(some, 'authorization'))

const typeOf = ({ type }: ServerEntry, key: 'url' | 'httpUrl'): RemoteServer['type'] => {
  if (type === 'sse') return 'sse'
  return type !== undefined || key === 'httpUrl' ? 'http' : 'auto'
}
