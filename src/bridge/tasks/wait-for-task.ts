import { withRelatedTask } from '../../eras/tasks.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Answer, Exchange, Question } from '../../protocol/exchange.ts'
import { isFinal } from '../../protocol/tasks.ts'
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
  const over = new Abort()
  const asked = new Set<string>()
  let wake: () => void = () => {}
  const stopWatching = tasks.watch(id, () => wake())
  const stopListening = exchange.signal.onAbort(() => wake())
  try {
    for (;;) {
      const changed = new Promise<void>(resolve => {
        wake = resolve
      })
      const found = await tasks.find(id)
      if (!found || exchange.signal.reason || isFinal(found.record.state.status)) return found
      askOpenQuestions(tasks, id, found, exchange, name, asked, over)
      await Promise.race([changed, sleep(POLL_MS)])
    }
  } finally {
    over.abort({ kind: 'cancelled' })
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
  asked: Set<string>,
  over: Abort,
): void => {
  for (const [key, request] of found.record.state.inputs?.entries() ?? []) {
    if (asked.has(key)) continue
    asked.add(key)
    const answer = (reply: Answer): void => {
      if (reply.kind === 'progress') return
      if (found.local) return found.local.answer(key, reply)
      const result = reply.kind === 'result' ? reply.result : { action: 'cancel' }
      void tasks.answerAll(id, found, Json.of({ [key]: result })).catch(() => {}) // the question stays open
    }
    const question: Question = {
      kind: 'question',
      method: request.get('method')?.asString() ?? '',
      params: withRelatedTask(request.get('params') ?? Json.empty, name),
      withdrawn: over,
      answer,
    }
    void deliver(exchange.sink, question)
  }
}
