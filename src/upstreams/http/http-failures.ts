import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { ADDRESS_REFUSED } from '../../std/guarded-connector.ts'
import { DISCONNECTED, type FailureDetails } from '../failures.ts'

/** An HTTP response that is not a success. */
export interface HttpErrorResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text?: string | undefined // the first line of its body
}

const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503, 504])
const STATUS_HINTS: Readonly<Record<number, string>> = {
  400: '; it may speak another version of the protocol',
  404: ' (is the URL right?)',
  405: ' (is the URL right?)',
}

/** The failure for an error status whose body is no JSON-RPC answer: quotes the server and says what to do. */
export const failureOfStatus = (response: HttpErrorResponse): FailureDetails => {
  const { status, text } = response
  const details = describeStatus(response, `HTTP ${status}`)
  return text ? { ...details, quoted: describeStatus(response, `HTTP ${status}: "${text}"`).text } : details
}

const describeStatus = ({ status, headers }: HttpErrorResponse, words: string): FailureDetails => {
  if (status === 401 || (status === 403 && headers['www-authenticate'] !== undefined))
    return {
      reason: 'upstream_auth',
      text: `refused our credentials (${words}): check its "headers"`,
    }
  if (status === 403)
    return { reason: 'upstream_refused', text: `refused the request (${words}): check its "url" and "headers"` }
  if (status === 413) return { reason: 'too_large', text: 'answered HTTP 413: the request is too large for it' }
  if (UNAVAILABLE.has(status)) return { reason: 'upstream_unreachable', text: `is not available (${words})` }
  const { location } = headers
  if (status < 400 && location)
    return {
      reason: 'upstream_protocol',
      text: `answered HTTP ${status} to ${location}: use that URL in the configuration`,
    }
  return { reason: 'upstream_protocol', text: `answered ${words}${STATUS_HINTS[status] ?? ''}` }
}

/** Whether a status says something about the server's era; credentials, outages and rate limits do not. */
export const isEraEvidence = (status: number): boolean =>
  status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 408 && status !== 429

/** The milliseconds of a Retry-After header, given in seconds or as a date; undefined if it is neither. */
export const readRetryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  const text = header.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1000)
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** What a request was doing when it failed. */
export type RequestPhase = 'connect' | 'headers' | 'body'

const CLOSED: Readonly<Record<RequestPhase, string>> = {
  connect: 'closed the connection',
  headers: 'closed the connection before answering',
  body: 'broke off its answer',
}

const NOT_TRUSTED = 'name its authority with NODE_EXTRA_CA_CERTS'

const CONNECT_HINTS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'is the name right?',
  EAI_AGAIN: 'does the name service answer?',
  EPROTO: 'it seems to speak no TLS: is "http:" meant instead of "https:"?',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it seems to speak no TLS: is "http:" meant instead of "https:"?',
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  CERT_HAS_EXPIRED: 'its certificate must be renewed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host: is the name right?',
}

/** The failure for an error of the HTTP client. */
export const failureOfError = (error: Error & { code?: unknown }, phase: RequestPhase): FailureDetails => {
  const code = typeof error.code === 'string' ? error.code : ''
  if (code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED') return DISCONNECTED
  if (code === ADDRESS_REFUSED) return { reason: 'upstream_redirect', text: error.message }
  if (code === 'UND_ERR_INVALID_ARG')
    return { reason: 'upstream_protocol', text: `cannot be asked like this: ${error.message}` }
  if (phase === 'connect' || code === 'UND_ERR_CONNECT_TIMEOUT')
    return {
      reason: 'upstream_unreachable',
      text: `did not answer: ${messageOf(error)} (${CONNECT_HINTS[code] ?? 'is it running?'})`,
      ...(code === 'ECONNREFUSED' && { isRefused: true }),
    }
  if (error.name === 'HTTPParserError' || code === 'UND_ERR_HEADERS_OVERFLOW')
    return { reason: 'upstream_protocol', text: `does not speak HTTP: ${error.message}` }
  return { reason: 'upstream_stream_lost', text: `${CLOSED[phase]}: ${messageOf(error)}` }
}

/** A host with several addresses fails with one error per address and an empty message of its own. */
const messageOf = (error: Error): string => {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error
  const cause = first instanceof Error ? first : error
  // OpenSSL names a thread, a number, its library and a source file around the one part that people understand.
  const reason = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/i.exec(cause.message)?.[1]
  return reason ?? (cause.message || cause.name)
}

const SHOWN_CHARACTERS = 200
const READ_CHARACTERS = 16 * 1024 // of a page
const SHORTEST_SECRET = 6
const AUTH_SCHEME = /^(bearer|basic|digest|token|apikey)$/i
const HIDDEN = '[hidden]'

/** Headers without secrets; the message of an error may be about their values. */
const PUBLIC_HEADER = /^(accept|content-type|content-length|user-agent|traceparent|tracestate|last-event-id|mcp-.*)$/i

/** The first line of the body of an HTTP error, as plain text; undefined if there is nothing to read. */
export const errorBodyText = (body: Buffer, sentHeaders: readonly string[]): string | undefined => {
  if (body.length === 0 || !isUtf8(body)) return undefined
  const text = body.toString('utf8')
  const line = textOfJson(text) ?? firstLine(isHtml(text) ? textOfHtml(text.slice(0, READ_CHARACTERS)) : text)
  const shown = hideCredentials(sanitize(line.slice(0, READ_CHARACTERS)), sentHeaders)
  if (shown === '') return undefined
  return shown.length > SHOWN_CHARACTERS ? `${shown.slice(0, SHOWN_CHARACTERS)}…` : shown
}

const isHtml = (text: string): boolean =>
  /^\s*<(!doctype|html|head|body|\?xml|h1|center|title)/i.test(text.slice(0, 200))

/** Undefined if the text is not JSON; empty if the JSON has no message. */
const textOfJson = (text: string): string | undefined => {
  try {
    return firstLine(messageIn(JSON.parse(text)) ?? '')
  } catch {
    return undefined
  }
}

const MESSAGE_MEMBERS = ['message', 'error_description', 'detail', 'error', 'title'] as const

const messageIn = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return undefined
  const { error } = value as { error?: unknown }
  if (typeof error === 'object' && error !== null && 'message' in error) return asText(error.message)
  const found = MESSAGE_MEMBERS.map(name => asText((value as Readonly<Record<string, unknown>>)[name]))
  return found.find(text => text !== undefined)
}

const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** The title of a page, else its first heading, else its first words. */
const textOfHtml = (page: string): string => {
  const title = /<(?:title|h1)[^<>]*>([^<]*)</i.exec(page)?.[1] ?? ''
  if (title.trim() !== '') return title
  return page.replace(/<(style|script)[^<>]*>[^<]*<\/\1>/gi, '\n').replace(/<[^<>]*>/g, '\n')
}

const firstLine = (text: string): string => /\S[^\r\n]*/.exec(text)?.[0] ?? ''

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** Removes tags, control characters and characters that change the direction of the text after them. */
const sanitize = (text: string): string =>
  text
    .replace(/<[^<>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (_, name: string) => ENTITIES[name] ?? '')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .replaceAll('"', "'")
    .trim()

/** A server may repeat the request's headers; the caller must not see the configured credentials. */
const hideCredentials = (text: string, sentHeaders: readonly string[]): string => {
  let shown = text
  for (let i = 0; i + 1 < sentHeaders.length; i += 2) {
    if (PUBLIC_HEADER.test(sentHeaders[i] as string)) continue
    for (const part of (sentHeaders[i + 1] as string).split(/\s+/))
      if (part.length >= SHORTEST_SECRET && !AUTH_SCHEME.test(part)) shown = shown.replaceAll(part, HIDDEN)
  }
  return shown
}
