import { withRelatedTask } from '../../eras/tasks.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Answer, Exchange, Question } from '../../protocol/exchange.ts'
import { isFinal } from '../../protocol/task-info.ts'
import { sleep } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'
import type { FoundTask, GatewayTasks } from './gateway-tasks.ts'

const POLL_MS = 5000 // if no change is heard of

/**
 * Resolves with a task when it is over, or with undefined when it is gone or the client has left. Meanwhile its questions are
 * asked on the exchange, each once.
 */
export const waitForTask = async (
  tasks: GatewayTasks,
  id: string,
  exchange: Exchange,
  name: string,
): Promise<FoundTask | undefined> => {
  const asked = new Map<string, Abort>() // by key; aborted when it was answered, here or elsewhere
  let changed = new Abort()
  const wake = (): void => changed.abort({ kind: 'cancelled' })
  const stopWatching = tasks.watch(id, wake)
  const stopListening = exchange.signal.onAbort(wake)
  try {
    for (;;) {
      changed = new Abort()
      const found = await tasks.find(id)
      if (!found || exchange.signal.reason || isFinal(found.record.state.status)) return found
      askOpenQuestions(tasks, id, found, exchange, name, asked)
      await sleep(POLL_MS, changed)
    }
  } finally {
    for (const withdrawn of asked.values()) withdrawn.abort({ kind: 'cancelled' })
    stopWatching()
    stopListening()
  }
}

const askOpenQuestions = (
  tasks: GatewayTasks,
  id: string,
  found: FoundTask,
  exchange: Exchange,
  name: string,
  asked: Map<string, Abort>,
): void => {
  const inputs = found.record.state.inputs ?? Json.empty
  for (const [key, withdrawn] of asked) if (!inputs.has(key)) withdrawn.abort({ kind: 'cancelled' })
  for (const [key, request] of inputs.entries()) {
    if (asked.has(key)) continue
    const withdrawn = new Abort()
    asked.set(key, withdrawn)
    const answer = (reply: Answer): void => {
      if (reply.kind === 'progress') return
      void answerTask(tasks, id, key, reply).catch(() => {}) // the question stays open
    }
    const question: Question = {
      kind: 'question',
      method: request.get('method')?.asString() ?? '',
      params: withRelatedTask(request.get('params') ?? Json.empty, name),
      withdrawn,
      answer,
    }
    void deliver(exchange.sink, question)
  }
}

/** The task may run at another replica by now. */
const answerTask = async (
  tasks: GatewayTasks,
  id: string,
  key: string,
  reply: Exclude<Answer, { kind: 'progress' }>,
): Promise<void> => {
  const found = await tasks.find(id)
  if (found?.local) return found.local.answer(key, reply)
  const result = reply.kind === 'result' ? reply.result : { action: 'cancel' }
  if (found) await tasks.answerAll(id, found, Json.of({ [key]: result }))
}
