import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const MOST_HELD = 100

/** List flags of `subscriptions/listen`, the capability that backs each, and the notice it asks for. */
const FLAGS = [
  ['toolsListChanged', 'tools', 'notifications/tools/list_changed'],
  ['promptsListChanged', 'prompts', 'notifications/prompts/list_changed'],
  ['resourcesListChanged', 'resources', 'notifications/resources/list_changed'],
] as const

interface Held {
  readonly frame: Frame
  readonly timer: NodeJS.Timeout | undefined
}

/** Those who listen to what a session says outside any call; until somebody does, it is held for a while. */
export class Standing {
  readonly #holdMs: number
  readonly #expectsSomebody: boolean
  readonly #exchanges = new Map<Exchange, () => void>() // each with what is called when it has left
  #held: Held[] = []
  #hadSome = false

  constructor(options: { holdMs: number; expectsSomebody: boolean }) {
    this.#holdMs = options.holdMs
    this.#expectsSomebody = options.expectsSomebody
  }

  get size(): number {
    return this.#exchanges.size
  }

  /** Whether a listener would miss something if the session ended now. */
  get isNeeded(): boolean {
    for (const { isIdle } of this.#exchanges.keys()) if (!isIdle?.()) return true
    return false
  }

  /** The one who is asked: whoever came last. */
  get last(): Exchange | undefined {
    return [...this.#exchanges.keys()].at(-1)
  }

  attach(exchange: Exchange, capabilities: Json | undefined, left: () => void): void {
    if (exchange.signal.reason) return left()
    this.#exchanges.set(exchange, left)
    this.#hadSome = true
    exchange.signal.onAbort(() => this.#leave(exchange))
    this.#tell(exchange, { kind: 'notice', method: ACKNOWLEDGED, params: honoured(exchange.params, capabilities) })
    if (!this.#exchanges.has(exchange)) return
    for (const { frame, timer } of this.#held.splice(0)) {
      clearTimeout(timer)
      this.#tell(exchange, frame)
    }
  }

  notice(method: string, params: Json): void {
    const frame: Frame = { kind: 'notice', method, params }
    for (const exchange of [...this.#exchanges.keys()]) this.#tell(exchange, frame)
    if (this.#expectsSomebody && !this.#hadSome && this.#held.length < MOST_HELD)
      this.#held.push({ frame, timer: undefined })
  }

  ask(question: Question): void {
    const { last } = this
    if (last) return this.#tell(last, question)
    const held: Held = { frame: question, timer: setTimeout(() => this.#refuse(question), this.#holdMs) }
    held.timer?.unref()
    this.#held.push(held)
    question.withdrawn.onAbort(() => this.#release(question))
  }

  /** Says that every list may have changed, also those whose changes the server never tells: it is a new one. */
  changed(capabilities: Json | undefined): void {
    for (const [, capability, method] of FLAGS) if (capabilities?.has(capability)) this.notice(method, Json.empty)
  }

  /** Ends every exchange with that frame. */
  close(frame: Frame): void {
    for (const { timer } of this.#held.splice(0)) clearTimeout(timer)
    const exchanges = [...this.#exchanges.keys()]
    this.#exchanges.clear()
    for (const exchange of exchanges) void deliver(exchange.sink, frame)
  }

  /** An exchange that could not take something has ended by that. */
  #tell(exchange: Exchange, frame: Frame): void {
    void deliver(exchange.sink, frame, () => this.#leave(exchange))
  }

  #leave(exchange: Exchange): void {
    const left = this.#exchanges.get(exchange)
    if (this.#exchanges.delete(exchange)) left?.()
  }

  #release(question: Question): void {
    const held = this.#held.find(({ frame }) => frame === question)
    clearTimeout(held?.timer)
    this.#held = this.#held.filter(({ frame }) => frame !== question)
  }

  #refuse(question: Question): void {
    this.#release(question)
    question.answer({
      kind: 'error',
      error: rpcError('methodNotFound', `Nobody is there to answer ${question.method}`),
    })
  }
}

const changes = (capabilities: Json | undefined, name: string): boolean =>
  capabilities?.get(name)?.get('listChanged')?.asBoolean() === true

const honoured = (params: Json, capabilities: Json | undefined): Json => {
  const wanted = params.get('notifications')
  const flags = FLAGS.filter(
    ([flag, capability]) => wanted?.get(flag)?.asBoolean() === true && changes(capabilities, capability),
  )
  return Json.of({ notifications: Object.fromEntries(flags.map(([flag]) => [flag, true])) })
}
