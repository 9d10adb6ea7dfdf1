import { readServerTask, type ServerTask, withoutRelatedTask } from '../../eras/tasks.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { TaskFollower } from './task-follower.ts'

/**
 * Calls a tool that a server of 2025-11-25 runs only as a task, for a caller that waits: starts the task, asks how it is, and
 * answers the call with its result. Questions of the task arrive with `tasks/result`.
 */
export const callAsTask = (exchange: Exchange, dispatch: Dispatch): void => {
  const follow = ({ status, pollMs }: ServerTask): void => {
    if (status === 'working') follower.wait(pollMs)
    else fetchResult()
  }
  const follower = new TaskFollower(exchange, dispatch, follow)

  /** Answered when the task is over; until then, its questions arrive here. */
  const fetchResult = (): void =>
    follower.send('tasks/result', frame => {
      if (frame.kind === 'failure') return follower.failed(frame.error)
      if (frame.kind === 'result') return follower.end({ kind: 'result', result: withoutRelatedTask(frame.result) })
      return exchange.sink({ ...frame, params: withoutRelatedTask(frame.params) })
    })

  const created = (frame: Frame): void | Promise<void> => {
    if (frame.kind === 'notice' || frame.kind === 'question') return exchange.sink(frame)
    const task = frame.kind === 'result' ? readServerTask(frame.result.get('task')) : undefined
    if (!task) return follower.end(frame) // it has answered at once
    follower.id = task.id
    exchange.task?.started(task.id)
    follow(task)
  }

  follower.id = exchange.task?.serverTask
  if (follower.id !== undefined) follower.ask()
  else follower.call(exchange.params.with('task', { ttl: follower.ttlMs }), created)
}
