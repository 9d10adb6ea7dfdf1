import type { Socket } from 'node:net'
import { HEADER_NAME } from '../../std/header-text.ts'
import type { ByteText } from '../../wire/json-rpc.ts'
import type { DispatchedRequest, DispatchHandler } from './dispatch.ts'

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])
/** They change how a message is framed or how the connection is used: undici decides about them. */
const FRAMING_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect', 'te', 'trailer'],
])
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const NOT_IN_PATH = /[^\x21-\x7e]/
const NO_BODY = ''
const JOIN_BELOW = 16 * 1024 // bytes: above, two buffers in one system call are cheaper than a copy
const MAX_LINES = 256
const MAX_LINE_LENGTH = 1024

/** The heads of requests to one origin. They differ little, so the parts of the last ones are kept, checked. */
export class RequestHeads {
  readonly #host: string
  readonly #lines = new Map<string, { value: string; line: string }>() // by name
  #method = ''
  #path = ''
  #beginning = ''

  constructor(host: string) {
    this.#host = host
  }

  /** The lines that every request begins with; undefined if the method or the path is not for this client. */
  beginningOf(method: string, path: string): string | undefined {
    if (method === this.#method && path === this.#path) return this.#beginning
    if (!METHODS.has(method) || NOT_IN_PATH.test(path) || !path.startsWith('/')) return undefined
    this.#method = method
    this.#path = path
    this.#beginning = `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\nconnection: keep-alive\r\n`
    return this.#beginning
  }

  /** The line; undefined if it is not valid, or not for this client. */
  lineOf(name: string, value: string): string | undefined {
    const known = this.#lines.get(name)
    if (known !== undefined && known.value === value) return known.line
    if (known === undefined && (!HEADER_NAME.test(name) || FRAMING_HEADERS.has(name.toLowerCase()))) return undefined
    if (NOT_IN_VALUE.test(value)) return undefined
    const line = `${name}: ${value}\r\n`
    if (line.length > MAX_LINE_LENGTH) return line
    if (known) {
      known.value = value
      known.line = line
    } else if (this.#lines.size < MAX_LINES) this.#lines.set(name, { value, line })
    return line
  }
}

/** A request that is written as it is. */
export class PlainRequest {
  readonly method: string
  readonly handler: DispatchHandler
  readonly #head: string // each character is one byte
  readonly #body: Buffer | ByteText

  private constructor(method: string, handler: DispatchHandler, head: string, body: Buffer | ByteText) {
    this.method = method
    this.handler = handler
    this.#head = head
    this.#body = body
  }

  /** Undefined if the request is not valid, or anything about it is unusual: then it is for undici. */
  static of(request: DispatchedRequest, heads: RequestHeads, handler: DispatchHandler): PlainRequest | undefined {
    const { method, path, headers, body } = request
    const takesBody = METHODS_WITH_BODY.has(method)
    const length = body === null ? 0 : body.length
    if (length > 0 && !takesBody) return undefined
    let head = heads.beginningOf(method, path)
    if (head === undefined) return undefined
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const line = heads.lineOf(headers[i] as string, headers[i + 1] as string)
      if (line === undefined) return undefined
      head += line
    }
    head += takesBody ? `content-length: ${length}\r\n\r\n` : '\r\n'
    return new PlainRequest(method, handler, head, body ?? NO_BODY)
  }

  /** Writes it, in one system call where the socket takes it at once. */
  writeTo(socket: Socket): void {
    const head = this.#head
    const body = this.#body
    if (typeof body === 'string') return void socket.write(head + body, 'latin1')
    if (head.length + body.length >= JOIN_BELOW) {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      return socket.uncork()
    }
    const bytes = Buffer.allocUnsafe(head.length + body.length)
    bytes.write(head, 0, 'latin1')
    body.copy(bytes, head.length)
    socket.write(bytes)
  }
}
