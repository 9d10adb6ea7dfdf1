import type { IncomingHttpHeaders } from 'node:http'

/** Bytes from a server that are not HTTP/1.1, or that two readers could read differently. */
export class ResponseSyntaxError extends Error {
  override readonly name = 'HTTPParserError'
  readonly code = 'RESPONSE_SYNTAX'
}

/** How a body ends: after so many bytes, with its last chunk, or with the connection. */
export type BodyFraming = number | 'chunked' | 'until-close'

export interface ResponseHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly framing: BodyFraming
  readonly keepAlive: boolean // the connection may carry another request
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?\r\n/
/** Neither CR nor LF is in a value, so a line has one reading; a name is followed by its colon at once. */
const HEADER_LINE = /([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)\r\n/y
const LENGTH = /^\d{1,15}$/
const MOST_KNOWN_LINES = 32
const LONGEST_KNOWN_LINE = 256
const MAX_LINES = 256
const CRLF = '\r\n'

/** A header line that was read before. */
interface KnownLine {
  readonly text: string // up to its end
  readonly name: string
  readonly value: string
}

/** The lines of the last response on a connection, by their places: the next one most often has the same, but for one or two. */
export type KnownLines = KnownLine[]

/**
 * Reads a status line and headers with the empty line after them, each character one byte. Rejects what is known from
 * response smuggling: repeated or mixed framing headers, folded lines, bare CR or LF, white space before a colon.
 */
export const readHead = (text: string, method: string, known: KnownLines = []): ResponseHead => {
  const line = STATUS_LINE.exec(text)
  if (!line) throw new ResponseSyntaxError('its status line is not valid')
  const status = Number(line[2])
  const headers = readHeaderLines(text, line[0].length, known)
  const { 'content-length': length, 'transfer-encoding': encoding, connection } = headers
  const isOld = line[1] === '0'
  const framing = readFraming(length as string | string[] | undefined, encoding as string | string[] | undefined)
  const hasNoBody = method === 'HEAD' || status < 200 || status === 204 || status === 304
  const persists = isOld ? namesOption(connection, 'keep-alive') : !namesOption(connection, 'close')
  // A server that announces a body where none is allowed may send it: such a connection is not used again.
  const isClear = hasNoBody ? framing === 0 || framing === 'until-close' : framing !== 'until-close'
  return {
    status,
    headers,
    framing: hasNoBody ? 0 : framing,
    keepAlive: persists && isClear && !(isOld && encoding !== undefined),
  }
}

/** Reads header lines from `at` to the empty line that ends them. Also used for trailers. */
export const readHeaderLines = (text: string, at: number, known: KnownLines = []): IncomingHttpHeaders => {
  const headers = Object.create(null) as Record<string, string | string[]> // a name may be `__proto__`
  let next = at
  for (let lines = 0; !isEnd(text, next); lines++) {
    const before = known[lines]
    if (before !== undefined && text.startsWith(before.text, next)) {
      next += before.text.length
      addHeader(headers, before.name, before.value)
      continue
    }
    HEADER_LINE.lastIndex = next
    const line = HEADER_LINE.exec(text)
    if (!line) throw new ResponseSyntaxError('a header line is not valid')
    if (lines === MAX_LINES) throw new ResponseSyntaxError(`it has more than ${MAX_LINES} headers`)
    next = HEADER_LINE.lastIndex
    const name = (line[1] as string).toLowerCase()
    const value = trimSpace(line[2] as string)
    addHeader(headers, name, value)
    const [whole] = line
    if (lines < MOST_KNOWN_LINES && whole.length <= LONGEST_KNOWN_LINE) known[lines] = { text: whole, name, value }
  }
  return headers
}

const isEnd = (text: string, at: number): boolean => at + CRLF.length === text.length && text.startsWith(CRLF, at)

const addHeader = (headers: Record<string, string | string[]>, name: string, value: string): void => {
  const known = headers[name]
  if (known === undefined) headers[name] = value
  else if (typeof known === 'string') headers[name] = [known, value]
  else known.push(value)
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09

/** Not `trim`: that removes U+00A0, too, which is a byte like others here. */
const trimSpace = (value: string): string => {
  let from = 0
  let to = value.length
  while (from < to && isSpace(value.charCodeAt(from))) from++
  while (to > from && isSpace(value.charCodeAt(to - 1))) to--
  return to - from === value.length ? value : value.slice(from, to)
}

const readFraming = (length: string | string[] | undefined, encoding: string | string[] | undefined): BodyFraming => {
  if (encoding !== undefined) {
    if (length !== undefined) throw new ResponseSyntaxError('it has both Content-Length and Transfer-Encoding')
    if (typeof encoding !== 'string' || encoding.toLowerCase() !== 'chunked')
      throw new ResponseSyntaxError('its Transfer-Encoding is not "chunked"')
    return 'chunked'
  }
  if (length === undefined) return 'until-close'
  if (typeof length !== 'string' || !LENGTH.test(length))
    throw new ResponseSyntaxError('its Content-Length is not one number')
  return Number(length)
}

/** Whether a Connection header names the option. */
const namesOption = (connection: string | string[] | undefined, option: string): boolean => {
  if (connection === undefined) return false
  const text = typeof connection === 'string' ? connection : connection.join(',')
  if (text === option) return true
  if (text === 'keep-alive') return false
  return text
    .toLowerCase()
    .split(',')
    .some(part => part.trim() === option)
}
