import type { Socket } from 'node:net'
import { HEADER_NAME } from '../../std/header-text.ts'
import type { DispatchedRequest, DispatchHandler } from './dispatch.ts'

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])
/** They change how a message is framed or how the connection is used: undici decides about them. */
const FRAMING_HEADERS: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'expect', 'te', 'trailer'],
])
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const NOT_IN_PATH = /[^\x21-\x7e]/
const MAX_NAMES = 1000
const JOIN_BELOW = 16 * 1024 // bytes: above, two buffers in one system call are cheaper than a copy

/** By header name as it is written: the beginning of its line; undefined if the name is not for this client. */
const lineBeginnings = new Map<string, string | undefined>()

const lineBeginning = (name: string): string | undefined => {
  const known = lineBeginnings.get(name)
  if (known !== undefined || lineBeginnings.has(name)) return known
  const isPlain = HEADER_NAME.test(name) && !FRAMING_HEADERS.has(name.toLowerCase())
  const beginning = isPlain ? `${name}: ` : undefined
  if (lineBeginnings.size < MAX_NAMES) lineBeginnings.set(name, beginning)
  return beginning
}

/** A request that is written as it is. */
export class PlainRequest {
  readonly method: string
  readonly handler: DispatchHandler
  readonly #head: string // each character is one byte
  readonly #body: Buffer | null

  private constructor(method: string, handler: DispatchHandler, head: string, body: Buffer | null) {
    this.method = method
    this.handler = handler
    this.#head = head
    this.#body = body
  }

  /** Undefined if the request is not valid, or anything about it is unusual: then it is for undici. */
  static of(request: DispatchedRequest, host: string, handler: DispatchHandler): PlainRequest | undefined {
    const { method, path, headers, body } = request
    if (!METHODS.has(method) || NOT_IN_PATH.test(path) || !path.startsWith('/')) return undefined
    const takesBody = METHODS_WITH_BODY.has(method)
    const length = body === null ? 0 : body.length
    if (length > 0 && !takesBody) return undefined
    let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const beginning = lineBeginning(headers[i] as string)
      const value = headers[i + 1] as string
      if (beginning === undefined || NOT_IN_VALUE.test(value)) return undefined
      head += `${beginning}${value}\r\n`
    }
    head += takesBody ? `content-length: ${length}\r\n\r\n` : '\r\n'
    return new PlainRequest(method, handler, head, length > 0 ? body : null)
  }

  /** Writes it, in one system call where the socket takes it at once. */
  writeTo(socket: Socket): void {
    const head = this.#head
    const body = this.#body
    if (!body) return void socket.write(head, 'latin1')
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
