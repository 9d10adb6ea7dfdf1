import { expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { ExtensionTask } from './extension-task.ts'

const ACCEPTED = Json.of({ action: 'accept', content: {} })

test('a server that asks ever new questions is given up, and its task is cancelled', async () => {
  vi.useFakeTimers()
  const sent: string[] = []
  const frames: Frame[] = []
  let round = 0
  const exchange: Exchange = {
    ...{ kind: 'request', method: 'tools/call', params: Json.empty, signal: new Abort() },
    caller: { workspace: 'w', principal: 'ann', revision: MODERN, capabilities: Json.empty, headers: new Map() },
    sink: frame => {
      frames.push(frame)
      if (frame.kind === 'question') frame.answer({ kind: 'result', result: ACCEPTED })
    },
  }
  const task = new ExtensionTask(exchange, ({ method, sink }) => {
    sent.push(method)
    if (method !== 'tasks/get') return
    const questions = Array.from({ length: 50 }, (_, at) => [`${round}-${at}`, { method: 'elicitation/create' }])
    round++
    const state = { taskId: 't', status: 'input_required', pollIntervalMs: 100 }
    void sink({ kind: 'result', result: Json.of({ ...state, inputRequests: Object.fromEntries(questions) }) })
  })
  task.resume('t')
  await vi.advanceTimersByTimeAsync(60_000)
  vi.useRealTimers()
  expect(frames.filter(({ kind }) => kind === 'question')).toHaveLength(1000)
  const last = frames.at(-1)
  expect(last?.kind === 'failure' && last.error.data?.toValue()).toEqual({ reason: 'too_many_questions' })
  expect(sent.at(-1)).toBe('tasks/cancel')
  expect(round).toBeLessThan(30)
})
