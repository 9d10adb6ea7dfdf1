import { Json } from '../../wire/json/json.ts'
import { encodeResult, type Message } from '../../wire/json-rpc.ts'
import type { SseChannel } from './sse-channel.ts'

/** A channel that no session uses, and the last request id that was used on it. */
interface Spare {
  readonly channel: SseChannel
  readonly lastId: number
}

/**
 * Keeps the channel of a health check for the first caller. Servers with a single session exit when their channel
 * closes, so a health check that closed it would end the server it found healthy.
 */
export class SpareChannel {
  readonly #idleMs: number
  #spare: Spare | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(idleMs: number) {
    this.#idleMs = idleMs
  }

  keep(channel: SseChannel, lastId: number): void {
    if (this.#spare || this.#isClosed || !channel.isOpen) return channel.close()
    this.#spare = { channel, lastId }
    channel.handTo({ message: message => answerPing(channel, message), lost: () => this.#forget() })
    this.#timer = setTimeout(() => this.take()?.channel.close(), this.#idleMs).unref()
  }

  take(): Spare | undefined {
    const spare = this.#spare
    this.#forget()
    return spare
  }

  close(): void {
    this.#isClosed = true
    this.take()?.channel.close()
  }

  #forget(): void {
    clearTimeout(this.#timer)
    this.#spare = undefined
  }
}

/** No session receives the other messages of an unused channel. */
const answerPing = (channel: SseChannel, message: Message): void => {
  if (message.kind === 'request' && message.method === 'ping')
    channel.sendMessage(encodeResult(message.id, Json.empty), 'answer to ping')
}
