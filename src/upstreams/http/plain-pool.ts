import type { GuardedSocketConnector } from '../../std/guarded-connector.ts'
import { ConnectionsClosed, NO_CONTROLLER } from './dispatch.ts'
import { type ConnectionOwner, PlainConnection } from './plain-connection.ts'
import { type PlainRequest, RequestHeads } from './plain-request.ts'

const MAX_IDLE = 256 // connections; the number in use has no limit, since a call may wait for another
const SWEEP_MS = 1000

/**
 * Keep-alive connections to one origin. The one used last is used first, so that a burst does not keep its connections.
 * A connection is used again after one turn of the event loop, and a request is written at the end of its turn: by then the
 * end of a connection, or bytes that no request asked for, have been read.
 */
export class PlainPool implements ConnectionOwner {
  readonly heads: RequestHeads
  readonly #url: URL
  readonly #connect: GuardedSocketConnector
  readonly #onEmpty: () => void
  readonly #connections = new Set<PlainConnection>()
  readonly #idle: PlainConnection[] = []
  #released: PlainConnection[] = [] // in this turn
  #waiting: PlainRequest[] = []
  #isScheduled = false
  #sweeper: NodeJS.Timeout | undefined
  #isClosed = false
  #onClosed: (() => void) | undefined

  /** `onEmpty` is called when its last connection is closed. */
  constructor(origin: string, connect: GuardedSocketConnector, onEmpty: () => void) {
    this.#url = new URL(origin)
    this.heads = new RequestHeads(this.#url.host)
    this.#connect = connect
    this.#onEmpty = onEmpty
  }

  send(request: PlainRequest): void {
    this.#waiting.push(request)
    this.#schedule()
  }

  released(connection: PlainConnection): void {
    this.#released.push(connection)
    this.#schedule()
  }

  closed(connection: PlainConnection): void {
    this.#connections.delete(connection)
    const at = this.#idle.lastIndexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    if (this.#connections.size > 0) return
    this.#onClosed?.()
    if (this.#waiting.length === 0) this.#onEmpty()
  }

  /** Fails all requests and closes all connections. */
  async destroy(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    this.#turn()
    const error = new ConnectionsClosed()
    const isEmpty = new Promise<void>(resolve => {
      this.#onClosed = resolve
    })
    for (const connection of this.#connections) connection.destroy(error)
    if (this.#connections.size > 0) await isEmpty
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#turn)
  }

  readonly #turn = (): void => {
    this.#isScheduled = false
    const waiting = this.#waiting
    const released = this.#released
    this.#waiting = []
    this.#released = []
    for (const request of waiting) this.#start(request)
    for (const connection of released) this.#keep(connection)
  }

  #start(request: PlainRequest): void {
    if (this.#isClosed) return request.handler.onResponseError(NO_CONTROLLER, new ConnectionsClosed())
    const known = this.#takeIdle()
    if (known) known.send(request)
    else this.#connections.add(new PlainConnection(this, this.#connect, this.#url, request))
  }

  #takeIdle(): PlainConnection | undefined {
    const now = Date.now()
    for (let connection = this.#idle.pop(); connection; connection = this.#idle.pop()) {
      if (connection.isOpen && connection.idleUntil > now) return connection
      connection.close()
    }
    return undefined
  }

  #keep(connection: PlainConnection): void {
    if (!connection.isOpen) return
    if (this.#isClosed || this.#idle.length >= MAX_IDLE) return connection.close()
    this.#idle.push(connection)
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  #sweep(): void {
    const now = Date.now()
    for (const connection of this.#idle.filter(({ idleUntil }) => idleUntil <= now)) connection.close()
    if (this.#idle.length > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}
