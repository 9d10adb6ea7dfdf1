import type { Frame, Sink } from '../protocol/exchange.ts'

const MOST_FRAMES = 1000
const MOST_BYTES = 4 * 1024 * 1024

/** Keeps the frames of one exchange while its reader is behind; the pipe they came on is shared and never waits. */
export class Outbox {
  readonly #sink: Sink
  readonly #overflow: () => void
  #frames: Frame[] | undefined // while the reader is behind
  #bytes = 0
  #isFull = false

  constructor(sink: Sink, overflow: () => void) {
    this.#sink = sink
    this.#overflow = overflow
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
    this.#overflow()
  }

  #give(frame: Frame): void {
    const waiting = this.#sink(frame)
    if (!waiting) return
    const frames: Frame[] = []
    this.#frames = frames
    this.#bytes = 0
    const flush = () => {
      this.#frames = undefined
      for (const frame of frames) this.put(frame) // from the first that makes us wait again, the rest is kept again
    }
    waiting.then(flush, flush)
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
