import { EVENTS_REPLY, JSON_REPLY } from '../../protocol/http-reply.ts'

// The headers that MCP defines, as one short text. Most repeat what the exchange says anyway: a digit stands for those.

/** What an exchange says that headers repeat. */
export interface RepeatedValues {
  readonly revision: string
  readonly method: string | undefined
  readonly subject: string | undefined
}

const VERSION = 'mcp-protocol-version'
const METHOD = 'mcp-method'
const NAME = 'mcp-name'
const SESSION = 'mcp-session-id'
const EVENT = 'last-event-id'
const PARAM = 'mcp-param-'
const [HAS_VERSION, HAS_METHOD, HAS_NAME] = [1, 2, 4]
const [IS_JSON, IS_EVENTS] = [8, 9] // the head of a usual response
const SHOWN_OF_ID = 9 // characters of an id, which is a credential where callers need no token
const LONGEST = 512

/** Those of a request of the client. */
export const clientHeaders = (
  headers: Readonly<Record<string, string | string[] | undefined>>,
  carried: ReadonlyMap<string, string>,
  { revision, method, subject }: RepeatedValues,
): string => {
  let bits = 0
  let rest = ''
  const version = headers[VERSION]
  const inMethod = headers[METHOD]
  const name = headers[NAME]
  if (version === revision) bits = HAS_VERSION
  else if (typeof version === 'string') rest += line(VERSION, version)
  if (inMethod === method) bits |= inMethod === undefined ? 0 : HAS_METHOD
  else if (typeof inMethod === 'string') rest += line(METHOD, inMethod)
  if (name === subject) bits |= name === undefined ? 0 : HAS_NAME
  else if (typeof name === 'string') rest += line(NAME, name)
  const session = headers[SESSION]
  const event = headers[EVENT]
  if (typeof session === 'string') rest += line(SESSION, session.slice(0, SHOWN_OF_ID))
  if (typeof event === 'string') rest += line(EVENT, event.slice(0, SHOWN_OF_ID))
  if (carried.size > 0) for (const [key, value] of carried) if (key.startsWith(PARAM)) rest += line(key, value)
  return rest === '' ? String(bits) : `${bits}${rest}`
}

/** Those of a request to a server; other headers hold its credentials. `headers` is flat: name, value, name, value. */
export const serverHeaders = (headers: readonly string[], { revision, method, subject }: RepeatedValues): string => {
  let bits = 0
  let rest = ''
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    const value = headers[at + 1] as string
    if (name === VERSION && value === revision) bits |= HAS_VERSION
    else if (name === METHOD && value === method) bits |= HAS_METHOD
    else if (name === NAME && value === subject) bits |= HAS_NAME
    else if (name === SESSION || name === EVENT) rest += line(name, value.slice(0, SHOWN_OF_ID))
    else if (name.startsWith('mcp-')) rest += line(name, value)
  }
  return rest === '' ? String(bits) : `${bits}${rest}`
}

/** The head of a response, of `http-reply.ts`. */
export const replyText = (reply: readonly string[]): string => {
  if (reply === JSON_REPLY) return String(IS_JSON)
  if (reply === EVENTS_REPLY) return String(IS_EVENTS)
  let rest = '0'
  for (let at = 0; at + 1 < reply.length; at += 2) {
    const [name, value] = [reply[at] as string, reply[at + 1] as string]
    rest += line(name, name === SESSION ? value.slice(0, SHOWN_OF_ID) : value)
  }
  return rest
}

/** The headers of such a text. */
export const readMcpHeaders = (
  text: string | undefined,
  { revision, method, subject }: RepeatedValues,
): readonly (readonly [string, string])[] => {
  if (!text) return []
  const bits = Number(text[0])
  if (bits >= IS_JSON) return pairsOf(bits === IS_JSON ? JSON_REPLY : EVENTS_REPLY)
  const parts = text.slice(1).split('\n')
  const pairs: (readonly [string, string])[] = []
  if (bits & HAS_VERSION) pairs.push([VERSION, revision])
  if (bits & HAS_METHOD) pairs.push([METHOD, method ?? ''])
  if (bits & HAS_NAME) pairs.push([NAME, subject ?? ''])
  return [...pairs, ...pairsOf(parts)]
}

const pairsOf = (flat: readonly string[]): (readonly [string, string])[] => {
  const pairs: (readonly [string, string])[] = []
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([flat[at] ?? '', flat[at + 1] ?? ''])
  return pairs
}

const line = (name: string, value: string): string =>
  `${name}\n${value.length > LONGEST ? value.slice(0, LONGEST) : value}\n`
