import { deliver, faultOf } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Frame, Sink } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

const MOST_FRAMES = 1000
const MOST_BYTES = 4 * 1024 * 1024
const TOO_SLOW = rpcError(
  'internal',
  'The client reads the messages of this request too slowly: it was given up',
  Json.of({ reason: 'slow_reader' }),
)

/** Keeps the frames of one exchange while its reader is behind; the pipe they came on is shared and never waits. */
export class Outbox {
  readonly #sink: Sink
  readonly #giveUp: (error: RpcError) => void
  #frames: Frame[] | undefined // while the reader is behind
  #bytes = 0
  #isFull = false

  /** `giveUp` ends the call: its reader is too slow, or its sink threw. The last frame must follow. */
  constructor(sink: Sink, giveUp: (error: RpcError) => void) {
    this.#sink = sink
    this.#giveUp = giveUp
  }

  put(frame: Frame): void {
    const frames = this.#frames
    if (!frames) return this.#give(frame)
    if (isLast(frame)) return void frames.push(frame)
    if (this.#isFull || replacesOlder(frames, frame)) return
    frames.push(frame)
    this.#bytes += sizeOf(frame)
    if (frames.length <= MOST_FRAMES && this.#bytes <= MOST_BYTES) return
    this.#isFull = true
    frames.length = 0
    this.#giveUp(TOO_SLOW)
  }

  #give(frame: Frame): void {
    const waiting = isLast(frame) ? deliver(this.#sink, frame) : this.#try(frame)
    if (!waiting) return
    const frames: Frame[] = []
    this.#frames = frames
    this.#bytes = 0
    const flush = () => {
      this.#frames = undefined
      for (const frame of frames) this.put(frame) // from the first that makes us wait again, the rest is kept again
    }
    waiting.then(flush, (thrown: unknown) => {
      this.#giveUp(faultOf(thrown))
      flush()
    })
  }

  #try(frame: Frame): void | Promise<void> {
    try {
      return this.#sink(frame)
    } catch (thrown) {
      this.#giveUp(faultOf(thrown))
    }
  }
}

/** Of progress that was not read yet only the latest counts. */
const replacesOlder = (frames: Frame[], frame: Frame): boolean => {
  const at = isProgress(frame) ? frames.findIndex(isProgress) : -1
  if (at >= 0) frames[at] = frame
  return at >= 0
}

const isLast = ({ kind }: Frame): boolean => kind === 'result' || kind === 'failure'

const isProgress = (frame: Frame): boolean => frame.kind === 'notice' && frame.method === 'notifications/progress'

const sizeOf = (frame: Frame): number => ('params' in frame ? frame.params.toBytes().length : 0)
