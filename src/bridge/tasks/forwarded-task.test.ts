import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { forwardedCall, forwardedList, forwardedListen } from './forwarded-task.ts'
import { StartedTasks } from './started-tasks.ts'
import { TaskHandles } from './task-handle.ts'

const STATUS = 'notifications/tasks/status'
const options = () => ({
  server: 's',
  handles: new TaskHandles([randomBytes(32)]),
  started: new StartedTasks(new MemoryCluster().join(), SILENT),
})
const ANN: Caller = {
  ...{ workspace: 'w', principal: 'ann', revision: '2025-11-25', capabilities: Json.empty, headers: new Map() },
}
const exchangeOf = (caller: Partial<Caller>): Exchange & { readonly frames: Frame[] } => {
  const frames: Frame[] = []
  const sink = (frame: Frame): void => void frames.push(frame)
  return {
    ...{ kind: 'request', method: 'tools/call', params: Json.empty, signal: NEVER, frames, sink },
    caller: { ...ANN, ...caller },
  }
}
const result = (members: PlainObject): Frame => ({ kind: 'result', result: Json.of(members) })
const status = (taskId: string): Frame => ({
  ...{ kind: 'notice', method: STATUS, params: Json.of({ taskId, status: 'working' }) },
})
const shown = ({ frames }: { readonly frames: Frame[] }): unknown[] =>
  frames.map(frame =>
    (frame.kind === 'result' ? frame.result : frame.kind === 'notice' ? frame.params : Json.empty).toValue(),
  )

test('a result that is no task keeps its members, whatever their names', () => {
  const exchange = exchangeOf({})
  const members = { content: [], taskId: '7', task: { title: 'mine' } }
  void forwardedCall(options(), exchange).sink(result(members))
  expect(shown(exchange)).toEqual([members])
})

test('lists and notifications name the tasks that the caller has started, and no others', () => {
  const shared = options()
  const call = exchangeOf({})
  void forwardedCall(shared, call).sink(result({ task: { taskId: 't1' } }))
  const [{ task }] = shown(call) as [{ task: { taskId: string } }]
  expect(task.taskId).not.toBe('t1')
  const all = result({ tasks: [{ taskId: 't1' }, { taskId: 't2' }, { status: 'working' }], nextCursor: 'c' })
  for (const [caller, own] of [
    [{}, [task]],
    [{ principal: 'ben' }, []],
    [{ principal: undefined, session: 'x' }, []],
    [{ workspace: 'v' }, []],
  ] as const) {
    const list = exchangeOf(caller)
    void forwardedList(shared, list).sink(all)
    expect(shown(list)).toEqual([{ tasks: own, nextCursor: 'c' }])
    const listen = exchangeOf(caller)
    for (const id of ['t1', 't2']) void forwardedListen(shared, listen).sink(status(id))
    expect(shown(listen)).toEqual(own.map(({ taskId }) => ({ taskId, status: 'working' })))
  }
})

test('an anonymous session sees its own tasks; without a session there is nothing to know it by', () => {
  const shared = options()
  for (const [session, count] of [
    ['x', 1],
    [undefined, 0],
  ] as const) {
    const caller = { principal: undefined, ...(session && { session }) }
    void forwardedCall(shared, exchangeOf(caller)).sink(result({ task: { taskId: `of ${session}` } }))
    const list = exchangeOf(caller)
    void forwardedList(shared, list).sink(result({ tasks: [{ taskId: `of ${session}` }] }))
    expect((shown(list)[0] as { tasks: unknown[] }).tasks).toHaveLength(count)
  }
})
