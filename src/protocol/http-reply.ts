// The head of an HTTP response as the flight recorder keeps it: flat, name, value, name, value. `:status` is its status.

const STATUS = ':status'
const TYPE = 'content-type'

/** The two usual ones are constants: the recorder keeps them as one character. */
export const JSON_REPLY: readonly string[] = [STATUS, '200', TYPE, 'application/json']
export const EVENTS_REPLY: readonly string[] = [STATUS, '200', TYPE, 'text/event-stream']

/** Headers of a response that say how it is to be read; others may hold secrets. */
const KEPT = ['retry-after', 'www-authenticate', 'allow', 'location', 'mcp-session-id'] as const

type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>

/** What is kept of the head of a response. */
export const httpReply = (status: number, headers: ReplyHeaders): readonly string[] => {
  const type = headers[TYPE]
  const usual =
    status === 200 ? (type === JSON_REPLY[3] ? JSON_REPLY : type === EVENTS_REPLY[3] && EVENTS_REPLY) : false
  if (usual && !hasKeptHeader(headers)) return usual
  const reply = [STATUS, String(status)]
  for (const name of [TYPE, ...KEPT]) {
    const value = headers[name]
    if (value !== undefined) reply.push(name, String(value))
  }
  return reply
}

const hasKeptHeader = (headers: ReplyHeaders): boolean => {
  for (const name of KEPT) if (headers[name] !== undefined) return true
  return false
}
