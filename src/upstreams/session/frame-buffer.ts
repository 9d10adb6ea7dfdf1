import { deliver, thrownError } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { compactFrame, type Frame, type Sink } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'

const MOST_FRAMES = 1000
const MOST_BYTES = 4 * 1024 * 1024
const TOO_SLOW = rpcError(
  'internal',
  'The client reads the messages of this request too slowly: the request was ended',
  Json.of({ reason: 'slow_reader' }),
)

/** Buffers the frames of one call while its client is slow: the stream they come on is shared and never waits. */
export class FrameBuffer {
  readonly #sink: Sink
  readonly #fail: (error: RpcError) => void
  #frames: Frame[] | undefined // while the client is slow
  #bytes = 0
  #isFull = false

  /** `fail` ends the call: its client is too slow, or its sink threw. The call then puts its last frame. */
  constructor(sink: Sink, fail: (error: RpcError) => void) {
    this.#sink = sink
    this.#fail = fail
  }

  put(frame: Frame): void {
    const frames = this.#frames
    if (!frames) return this.#deliver(frame)
    if (isLast(frame)) return void frames.push(frame)
    if (this.#isFull || replacesOlder(frames, frame)) return
    frames.push(compactFrame(frame))
    this.#bytes += sizeOf(frame)
    if (frames.length <= MOST_FRAMES && this.#bytes <= MOST_BYTES) return
    this.#isFull = true
    frames.length = 0
    this.#fail(TOO_SLOW)
  }

  #deliver(frame: Frame): void {
    const waiting = isLast(frame) ? deliver(this.#sink, frame) : this.#try(frame)
    if (!waiting) return
    const frames: Frame[] = []
    this.#frames = frames
    this.#bytes = 0
    const flush = () => {
      this.#frames = undefined
      for (const frame of frames) this.put(frame) // buffers the rest again from the first that has to wait
    }
    waiting.then(flush, (thrown: unknown) => {
      this.#fail(thrownError(thrown))
      flush()
    })
  }

  #try(frame: Frame): void | Promise<void> {
    try {
      return this.#sink(frame)
    } catch (thrown) {
      this.#fail(thrownError(thrown))
    }
  }
}

/** Of the progress that the client has not read, only the latest is kept. */
const replacesOlder = (frames: Frame[], frame: Frame): boolean => {
  const at = isProgress(frame) ? frames.findIndex(isProgress) : -1
  if (at >= 0) frames[at] = compactFrame(frame)
  return at >= 0
}

const isLast = ({ kind }: Frame): boolean => kind === 'result' || kind === 'failure'

const isProgress = (frame: Frame): boolean => frame.kind === 'notice' && frame.method === NOTIFICATIONS.progress

const sizeOf = (frame: Frame): number => ('params' in frame ? frame.params.toBytes().length : 0)
