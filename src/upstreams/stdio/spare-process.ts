import { capabilitiesFingerprint } from '../../protocol/capabilities.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeResult, type Message } from '../../wire/json-rpc.ts'
import type { ProcessLimit, ProcessOwner } from '../process/process-limits.ts'
import type { Handshake } from '../session/handshake.ts'
import { DROP_ALL, type Pipe } from './pipe.ts'

/** An initialized process that no session uses. */
export interface Spare {
  readonly pipe: Pipe
  readonly handshake: Handshake
  readonly lastId: number // of a request that was sent to it
}

const SPARE_MS = 10_000
const NO_CAPABILITIES = capabilitiesFingerprint(Json.empty)

/**
 * Keeps the process of a health check for the first caller. It holds no state of a client, and was told that its client
 * has no capabilities: so it can serve a client that has none.
 */
export class SpareProcess implements ProcessOwner {
  readonly isBusy = false
  readonly #limit: ProcessLimit
  readonly #keepMs: number
  readonly #isNeeded: () => boolean
  #spare: Spare | undefined
  #timer: NodeJS.Timeout | undefined
  #lastUsed = 0

  /** `idleMs` as in the limits of the server, 0: no limit; `isNeeded` is false where a client has a process already. */
  constructor(limit: ProcessLimit, idleMs: number, isNeeded: () => boolean) {
    this.#limit = limit
    this.#isNeeded = isNeeded
    this.#keepMs = Math.min(SPARE_MS, idleMs || SPARE_MS)
  }

  get lastUsed(): number {
    return this.#lastUsed
  }

  get pipe(): Pipe | undefined {
    return this.#spare?.pipe
  }

  keep(spare: Spare): void {
    this.endProcess()
    if (!this.#isNeeded()) return stop(spare.pipe)
    this.#limit.reserve(this)
    this.#spare = spare
    this.#lastUsed = Date.now()
    spare.pipe.readBy({ message: message => answerPing(spare.pipe, message), gone: () => void this.#forget() })
    this.#timer = setTimeout(() => this.endProcess(), this.#keepMs).unref()
  }

  /** The process for a session of that caller; one that the caller cannot use is ended, as the caller starts another. */
  take({ capabilities }: Caller, expected: Handshake | undefined): Spare | undefined {
    const spare = this.#spare
    const isSame = !expected || expected.revision === spare?.handshake.revision
    if (!isSame || capabilitiesFingerprint(capabilities) !== NO_CAPABILITIES) this.endProcess()
    const taken = this.#forget()
    taken?.pipe.readBy(undefined)
    return taken
  }

  endProcess(): void {
    const spare = this.#forget()
    if (spare) stop(spare.pipe)
  }

  #forget(): Spare | undefined {
    const spare = this.#spare
    clearTimeout(this.#timer)
    this.#spare = undefined
    if (spare) this.#limit.release(this)
    return spare
  }
}

const stop = (pipe: Pipe): void => {
  pipe.readBy(DROP_ALL)
  void pipe.child.stop()
}

/** No session receives the other messages of an unused process. */
const answerPing = (pipe: Pipe, message: Message): void => {
  if (message.kind === 'request' && message.method === 'ping') pipe.send(encodeResult(message.id, Json.empty))
}
