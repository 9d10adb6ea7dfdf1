/** A call with a number of its own, which no other call of a run has. */
export interface NumberedCall {
  readonly number: number
  readonly tool: 'work' | 'ask' | 'job' // `job` runs only as a task
  readonly ms: number // how long the server works on it
  readonly events: number // progress notifications on the way
}

/** How a call ended, as its client saw it. */
export type Outcome =
  | { readonly kind: 'result'; readonly text: string; readonly isReplayed?: boolean }
  | { readonly kind: 'error'; readonly reason: string }
  | { readonly kind: 'refused' } // no gateway took the connection
  | { readonly kind: 'cut' } // the connection was reset, or its stream broke off
  | { readonly kind: 'silent'; readonly why: string }

/** What a run is judged by. */
export interface Counts {
  readonly calls: number
  readonly results: number
  readonly replayed: number
  readonly refused: number
  readonly cut: number
  readonly errors: Readonly<Record<string, number>> // by reason
  readonly tasks: number // calls that became tasks
  readonly sessionsLost: number
  readonly tasksLost: number
  readonly doubled: number
  readonly wrong: number
  readonly silent: number
}

interface Entry {
  readonly client: string
  readonly call: NumberedCall
  outcome?: Outcome
}

/** The text that is the right result of a call. */
export const resultOf = ({ tool, number }: Pick<NumberedCall, 'tool' | 'number'>): string => `${tool} ${number} done`

/** Remembers every numbered call: who made it, how often a server executed it, and how it ended. */
export class Ledger {
  readonly #entries = new Map<number, Entry>()
  readonly #executions = new Map<number, number>()
  readonly #losses = new Map<string, string>() // session id → client
  readonly #repeats: string[] = []
  readonly #tasks = new Set<number>()
  readonly #lostTasks: string[] = []
  #next = 0

  begin(client: string, call: Omit<NumberedCall, 'number'>): NumberedCall {
    const numbered = { ...call, number: ++this.#next }
    this.#entries.set(numbered.number, { client, call: numbered })
    return numbered
  }

  end({ number }: NumberedCall, outcome: Outcome): void {
    const entry = this.#entries.get(number)
    if (entry) entry.outcome = outcome
  }

  /** A server has executed the call of that number. */
  executed(number: number): void {
    this.#executions.set(number, (this.#executions.get(number) ?? 0) + 1)
  }

  /** A client received something a second time: a result, or an event of a stream. */
  repeated(client: string, what: string): void {
    this.#repeats.push(`${client}: ${what}`)
  }

  /** A session id that had answered before was unknown. */
  sessionLost(client: string, session: string): void {
    this.#losses.set(session, client)
  }

  /** A client knows the task that its call has become. */
  taskStarted({ number }: NumberedCall): void {
    this.#tasks.add(number)
  }

  /** A task that its client knows was unknown. */
  taskLost(client: string, { number }: NumberedCall): void {
    this.#lostTasks.push(`${number} of ${client}`)
  }

  /** Whether a call up to that number has not ended. */
  isUnderWay(upTo: number): boolean {
    for (const [number, { outcome }] of this.#entries) {
      if (number > upTo) return false
      if (!outcome) return true
    }
    return false
  }

  counts(): Counts {
    const outcomes = [...this.#entries.values()].map(({ outcome }) => outcome)
    const errors: Record<string, number> = {}
    for (const outcome of outcomes)
      if (outcome?.kind === 'error') errors[outcome.reason] = (errors[outcome.reason] ?? 0) + 1
    const results = outcomes.filter(outcome => outcome?.kind === 'result')
    return {
      calls: outcomes.length,
      results: results.length,
      replayed: results.filter(outcome => outcome.isReplayed).length,
      refused: outcomes.filter(outcome => outcome?.kind === 'refused').length,
      cut: outcomes.filter(outcome => outcome?.kind === 'cut').length,
      errors,
      tasks: this.#tasks.size,
      sessionsLost: this.#losses.size,
      tasksLost: this.#lostTasks.length,
      doubled: this.#doubled().length,
      wrong: this.#wrong().length,
      silent: this.#silent().length,
    }
  }

  /** One line for each thing that must never happen. */
  faults(): string[] {
    return [
      ...[...this.#losses.values()].map(client => `session lost: ${client}`),
      ...this.#lostTasks.map(task => `task lost: ${task}`),
      ...this.#doubled().map(what => `doubled: ${what}`),
      ...this.#wrong().map(what => `wrong: ${what}`),
      ...this.#silent().map(what => `silent: ${what}`),
    ]
  }

  #doubled(): string[] {
    const twice = [...this.#executions].filter(([, times]) => times > 1)
    return [...twice.map(([number, times]) => `${this.#nameOf(number)} was executed ${times} times`), ...this.#repeats]
  }

  #wrong(): string[] {
    return [...this.#entries].flatMap(([number, { call, outcome }]) => {
      if (outcome?.kind !== 'result') return []
      if (outcome.text !== resultOf(call)) return [`${this.#nameOf(number)} got "${outcome.text}"`]
      return this.#executions.has(number) ? [] : [`${this.#nameOf(number)} got a result and was never executed`]
    })
  }

  #silent(): string[] {
    return [...this.#entries].flatMap(([number, { outcome }]) =>
      outcome === undefined || outcome.kind === 'silent'
        ? [`${this.#nameOf(number)}: ${outcome?.why ?? 'never ended'}`]
        : [],
    )
  }

  #nameOf(number: number): string {
    const entry = this.#entries.get(number)
    return entry ? `${entry.call.tool} ${number} of ${entry.client}` : `unknown call ${number}`
  }
}
