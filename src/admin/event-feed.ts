import type { GatewayStatus } from '../protocol/status.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import type { FeedEvents } from './api/events.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'
import { encodeFeedEvent, type FeedKind, FeedListener } from './feed-listener.ts'

/** Where the parts of the gateway tell the console what has changed. */
export interface EventPublisher {
  /** False: no page reads, and `publish` does nothing. Ask before preparing costly data. */
  readonly hasListeners: boolean
  publish<K extends FeedKind>(kind: K, data: FeedEvents[K]): void
}

interface EventFeedOptions {
  readonly status: () => GatewayStatus
  readonly history?: LogHistory | undefined
}

const STATUS_MS = 1000
const MOST_LISTENERS = 64
const MOST_OF_ONE = 16 // of one principal
const MEMORY_STEP = 1024 * 1024 // a change of the memory below it is no news

interface AttachedListener {
  readonly listener: FeedListener
  readonly principal: string | undefined
  readonly isOwner: boolean
}

/** The events of `GET /admin/events`. Nothing is computed while there is no listener. */
export class EventFeed implements EventPublisher {
  readonly #options: EventFeedOptions
  readonly #attached = new Set<AttachedListener>()
  #ticker: NodeJS.Timeout | undefined
  #unfollow: (() => void) | undefined
  #lastStatus = ''

  constructor(options: EventFeedOptions) {
    this.#options = options
  }

  get hasListeners(): boolean {
    return this.#attached.size > 0
  }

  get listenerCount(): number {
    return this.#attached.size
  }

  publish<K extends FeedKind>(kind: K, data: FeedEvents[K]): void {
    if (this.#attached.size > 0) this.#send(kind, encodeFeedEvent(kind, data))
  }

  /** Serves one reader until it disconnects. */
  attach({ caller, response }: AdminCall): void {
    const { principal, role } = caller
    const ofOne = [...this.#attached].filter(each => each.principal === principal).length
    if (this.#attached.size >= MOST_LISTENERS || ofOne >= MOST_OF_ONE) throw TOO_MANY
    const entry: AttachedListener = { listener: new FeedListener(response), principal, isOwner: role === 'owner' }
    this.#attached.add(entry)
    response.on('close', () => this.#detach(entry))
    this.#ticker ??= setInterval(() => this.#tick(), STATUS_MS).unref()
    if (entry.isOwner) this.#unfollow ??= this.#followLog()
    this.#lastStatus = this.#readStatus()
    entry.listener.send('status', this.#lastStatus)
  }

  close(): void {
    for (const entry of [...this.#attached]) {
      this.#detach(entry)
      entry.listener.end()
    }
  }

  #detach(entry: AttachedListener): void {
    if (!this.#attached.delete(entry)) return
    entry.listener.close()
    if (![...this.#attached].some(({ isOwner }) => isOwner)) {
      this.#unfollow?.()
      this.#unfollow = undefined
    }
    if (this.#attached.size > 0) return
    clearInterval(this.#ticker)
    this.#ticker = undefined
  }

  #followLog(): (() => void) | undefined {
    return this.#options.history?.follow(line => this.#send('log', encodeFeedEvent('log', { line: { ...line } })))
  }

  #send(kind: FeedKind, event: string): void {
    for (const { listener, isOwner } of this.#attached) if (isOwner || kind !== 'log') listener.send(kind, event)
  }

  #tick(): void {
    const status = this.#readStatus()
    if (status === this.#lastStatus) return
    this.#lastStatus = status
    this.#send('status', status)
  }

  #readStatus(): string {
    const status = this.#options.status()
    const memoryBytes = Math.round(status.memoryBytes / MEMORY_STEP) * MEMORY_STEP
    return encodeFeedEvent('status', { ...status, memoryBytes })
  }
}

const TOO_MANY = new AdminError(
  429,
  'Too many pages read the events of this gateway; close some tabs of the console',
  undefined,
  { 'retry-after': '30' },
)

/** The endpoint of the events. */
export const createEventEndpoints = (feed: EventFeed): readonly AdminEndpoint[] => [
  {
    method: 'GET',
    path: '/admin/events',
    access: 'viewer',
    summary: 'What changes, as server-sent events: status, log, recording, config, tokens, logins, dropped',
    media: 'text/event-stream',
    run: call => feed.attach(call),
  },
]
