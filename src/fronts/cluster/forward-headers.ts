import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { CALLER_HEADER } from './caller-seal.ts'

/** The header with which a replica confirms that it, and no other program at its address, has accepted the request. */
export const REPLICA_HEADER = 'dragoman-replica'

/** The time at a replica that found the caller of a request expired: its clock differs from the sender's. */
export const CLOCK_HEADER = 'dragoman-clock'

/** Headers of one connection, RFC 9110, 7.6.1. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
] as const

/** Not passed on: the HTTP client writes its own, and the home needs no credentials. */
const NOT_SENT: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'expect',
  'content-length',
  'authorization',
  'proxy-authorization',
  'cookie',
  CALLER_HEADER,
  REPLICA_HEADER,
])

/** The headers of a forwarded request, flat: name, value, name, value. */
export const requestHeaders = ({ rawHeaders, headers }: IncomingMessage, caller: string): string[] => {
  const named = namedByConnection(headers.connection)
  const sent = [CALLER_HEADER, caller]
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    if (NOT_SENT.has(name) || named.includes(name)) continue
    sent.push(name, rawHeaders[at + 1] as string)
  }
  return sent
}

const NONE: readonly string[] = []

const namedByConnection = (connection: string | undefined): readonly string[] => {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return NONE
  return connection.split(',').map(name => name.trim().toLowerCase())
}

/** The headers of the home's response that belong to the response, not to the connection between the replicas. */
export const responseHeaders = (headers: IncomingHttpHeaders): Record<string, string | string[]> => {
  const passed: Record<string, string | string[]> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && !NOT_PASSED.has(name)) passed[name] = value
  }
  return passed
}

const NOT_PASSED: ReadonlySet<string> = new Set([...HOP_BY_HOP, REPLICA_HEADER])
