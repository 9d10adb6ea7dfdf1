import { setTimeout as sleep } from 'node:timers/promises'
import type { NumberedCall, Outcome } from '../ledger.ts'
import { type ClientContext, outcomeOf, outcomeOfConnection, reasonOf, SILENT_MS } from './client.ts'
import type { Message } from './http.ts'

const POLL_MS = 200
const UNKNOWN = 'unknown_task'
/** Errors of a request about a task that say nothing about the task: it is sent again. */
const PASSING: ReadonlySet<string> = new Set(['store_away', 'replica_lost', 'gateway_stopping'])
const FINAL: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled'])

/** Sends one request and reads its answer; undefined if no gateway took it. Rejects when the connection fails. */
export type Ask = (method: string, params: Readonly<Record<string, unknown>>) => Promise<Message | undefined>

/** Repeats a request that changes nothing until a gateway answers it. */
const askSurely = async (
  ask: Ask,
  method: string,
  taskId: unknown,
  deadline: number,
): Promise<Message | Unanswered> => {
  let attempts = 0
  let why = 'no time was left'
  for (; Date.now() < deadline; await sleep(POLL_MS)) {
    const askedAt = Date.now()
    const after = (): string => `after ${Date.now() - askedAt} ms`
    attempts++
    try {
      const message = await ask(method, { taskId })
      const reason = message ? message.error && reasonOf(message.error) : 'no replica'
      if (message && !(reason !== undefined && PASSING.has(reason))) return message
      why = `${reason} ${after()}`
    } catch (error) {
      if (!outcomeOfConnection(error)) throw error
      why = `${(error as NodeJS.ErrnoException).code ?? error} ${after()}`
    }
  }
  return { unanswered: `${method} ${attempts} times in vain, the last time: ${why}` }
}

/** What came of a request that had no answer in time. */
interface Unanswered {
  readonly unanswered: string
}

/** The end of a task as the answer of its call. In 2026-07-28 the last state of the task contains it. */
const endIn = (state: Readonly<Record<string, unknown>>): Message => {
  if (state.status === 'completed') return { result: state.result as Readonly<Record<string, unknown>> }
  const { error = { code: 0, message: `${state.status} ${state.statusMessage}` } } = state as Pick<Message, 'error'>
  return { error }
}

/** Asks for a task until it is over. A task that its client knows must never be unknown. */
export const followTask = async (
  ask: Ask,
  taskId: unknown,
  call: NumberedCall,
  { ledger, name }: ClientContext,
): Promise<Outcome> => {
  ledger.taskStarted(call)
  const deadline = Date.now() + SILENT_MS
  const isModern = (state: object): boolean => 'resultType' in state
  let last: Message | Unanswered
  for (;;) {
    last = await askSurely(ask, 'tasks/get', taskId, deadline)
    if ('unanswered' in last) break
    const state = last.result
    if (!state) break
    if (FINAL.has(state.status)) {
      last = isModern(state) ? endIn(state) : await askSurely(ask, 'tasks/result', taskId, deadline)
      break
    }
    await sleep(POLL_MS)
  }
  if ('unanswered' in last) return { kind: 'silent', why: `its task did not end: ${last.unanswered}` }
  const outcome = outcomeOf(last)
  if (outcome.kind === 'error' && outcome.reason === UNKNOWN) ledger.taskLost(name, call)
  return outcome
}
