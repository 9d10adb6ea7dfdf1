import type { OnReadOpts, Socket } from 'node:net'
import type { GuardedSocketConnector } from '../../std/guarded-connector.ts'
import type { DispatchController, DispatchHandler } from './dispatch.ts'
import type { PlainRequest } from './plain-request.ts'
import type { ResponseHead } from './response-head.ts'
import { type ParsedResponse, ResponseParser } from './response-parser.ts'

/** The connection broke or was closed; the code is the one that undici gives it. */
class ConnectionClosed extends Error {
  readonly code = 'UND_ERR_SOCKET'
}

/** What a pool learns of its connections. */
export interface ConnectionOwner {
  /** The connection can carry another request. */
  released(connection: PlainConnection): void
  closed(connection: PlainConnection): void
}

const READ_BYTES = 64 * 1024
const IDLE_MS = 4000 // if the server does not say how long it keeps a connection
const IDLE_MARGIN_MS = 2000 // the server may close it that much before, from where we see it
const LONGEST_IDLE_MS = 10 * 60_000

const sharedBuffer = Buffer.allocUnsafeSlow(READ_BYTES)
/** Node reads and calls back at once, so one buffer is enough for all connections; on Windows, reads are pending for long. */
const readBuffer = (): Buffer => (process.platform === 'win32' ? Buffer.allocUnsafeSlow(READ_BYTES) : sharedBuffer)

/** One keep-alive connection of HTTP/1.1 without TLS. It carries one request at a time. */
export class PlainConnection implements DispatchController, ParsedResponse {
  idleUntil = 0 // in the time of Date.now()
  readonly #owner: ConnectionOwner
  readonly #parser = new ResponseParser(this)
  readonly #socket: Socket
  #handler: DispatchHandler | undefined // of the request that it carries, or waits to carry
  #idleMs = 0 // 0: it is not used again
  #lastKeepAlive: string | string[] | undefined
  #lastIdleMs = IDLE_MS
  #rest: Buffer | undefined // read, but not parsed while paused

  /** Connects, and sends that request. */
  constructor(owner: ConnectionOwner, connect: GuardedSocketConnector, url: URL, first: PlainRequest) {
    this.#owner = owner
    this.#handler = first.handler
    const onread: OnReadOpts = { buffer: readBuffer(), callback: (count, bytes) => this.#read(bytes as Buffer, count) }
    this.#socket = connect(url, onread, error => (error ? this.#lost(error) : this.#connected(first)))
    this.#socket.once('close', () => owner.closed(this))
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed && this.#socket.writable
  }

  send(request: PlainRequest): void {
    this.#handler = request.handler
    this.#idleMs = 0
    this.#parser.expect(request.method)
    try {
      request.handler.onRequestStart(this)
      if (!this.#handler) return // aborted
      this.#socket.ref()
      request.writeTo(this.#socket)
    } catch (error) {
      this.#lost(error as Error)
    }
  }

  abort(): void {
    this.#handler = undefined
    this.#parser.isPaused = true
    this.#socket.destroy()
  }

  pause(): void {
    this.#parser.isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    const rest = this.#rest
    if (!rest || this.#socket.destroyed) return
    this.#rest = undefined
    this.#parser.isPaused = false
    this.#parse(rest, rest.length)
    if (!this.#parser.isPaused) this.#socket.resume()
  }

  /** Closes it while it carries no request. */
  close(): void {
    this.#socket.destroy()
  }

  /** Closes it; a request that it carries fails with the error. */
  destroy(error: Error): void {
    this.#lost(error)
  }

  head({ status, headers, keepAlive }: ResponseHead): void {
    this.#idleMs = keepAlive ? this.#idleMsOf(headers['keep-alive']) : 0
    this.#handler?.onResponseStart(this, status, headers)
  }

  body(chunk: Buffer): void {
    this.#handler?.onResponseData(this, chunk)
  }

  end(): void {
    const handler = this.#handler
    this.#handler = undefined
    try {
      handler?.onResponseEnd(this)
    } catch (error) {
      handler?.onResponseError(this, error as Error)
    }
  }

  /** A server says the same in each response. */
  #idleMsOf(keepAlive: string | string[] | undefined): number {
    if (keepAlive !== this.#lastKeepAlive) {
      this.#lastKeepAlive = keepAlive
      this.#lastIdleMs = idleMsOf(keepAlive)
    }
    return this.#lastIdleMs
  }

  #connected(first: PlainRequest): void {
    this.#socket.on('error', error => this.#lost(error))
    this.#socket.on('end', () => this.#lost(new ConnectionClosed('other side closed')))
    this.#socket.on('close', () => this.#lost(new ConnectionClosed('closed')))
    this.send(first)
  }

  #read(bytes: Buffer, count: number): boolean {
    this.#parse(bytes, count)
    return true
  }

  #parse(bytes: Buffer, count: number): void {
    if (!this.#handler) return this.close() // bytes that belong to no request
    let at: number
    try {
      at = this.#parser.feed(bytes, 0, count)
    } catch (error) {
      return this.#lost(error as Error) // of the parser, or thrown by the handler
    }
    if (this.#socket.destroyed) return
    if (this.#parser.isPaused) this.#rest = Buffer.from(bytes.subarray(at, count))
    else if (this.#parser.isDone) this.#release(at < count)
  }

  #release(hasMore: boolean): void {
    // A response before the end of its request, or bytes behind it, leave a connection in doubt.
    if (this.#idleMs === 0 || hasMore || this.#socket.writableLength > 0) return this.close()
    this.idleUntil = Date.now() + this.#idleMs
    this.#socket.unref()
    this.#owner.released(this)
  }

  #lost(error: Error & { code?: unknown }): void {
    const isEnd = error instanceof ConnectionClosed || error.code === 'ECONNRESET'
    if (this.#handler && isEnd && this.#parser.endWithConnection()) return this.close()
    const handler = this.#handler
    this.#handler = undefined
    this.#parser.isPaused = true
    this.close()
    handler?.onResponseError(this, error)
  }
}

/** How long an idle connection may be used again, by the Keep-Alive header of its last response. */
const idleMsOf = (keepAlive: string | string[] | undefined): number => {
  if (keepAlive === undefined) return IDLE_MS
  const seconds = /(?:^|[\s,;])timeout\s*=\s*(\d{1,6})/i.exec(String(keepAlive))?.[1]
  if (seconds === undefined) return IDLE_MS
  return Math.max(0, Math.min(Number(seconds) * 1000 - IDLE_MARGIN_MS, LONGEST_IDLE_MS))
}
