import type { MessagePort } from 'node:worker_threads'
import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Frame, Sink, Upstream } from '../../protocol/exchange.ts'
import { CallTable } from '../../std/call-table.ts'
import type { Log } from '../../telemetry/log.ts'
import { toRpcError } from '../define/failures.ts'
import { type FromThread, LEVELS, packFrame, type ThreadCall, type ToThread, unpackCall } from './messages.ts'
import { runOperation, type ThreadOperations } from './operations.ts'

interface HostedCall {
  readonly abort: Abort
  /** Resolves the promise of the sink: the client can take the next notification. */
  resume?: (() => void) | undefined
}

/** Serves an upstream, and operations for the gateway itself, to the thread that started this one. */
export const hostUpstream = (port: MessagePort, upstream: Upstream, operations: ThreadOperations = {}): void => {
  const running = new CallTable<number, HostedCall>()
  const post = (message: FromThread): void => port.postMessage(message)
  const log = logThrough(port)

  const sinkOf =
    (id: number, call: HostedCall): Sink =>
    frame => {
      if (!running.get(id)) return // aborted: its frames are not wanted
      if (isLast(frame)) running.delete(id)
      post({ kind: 'frame', id, frame: packFrame(frame) })
      if (isLast(frame)) return
      const before = call.resume
      return new Promise(resolve => {
        call.resume = () => {
          before?.()
          resolve()
        }
      })
    }

  const start = async (id: number, packed: ThreadCall): Promise<void> => {
    const call: HostedCall = { abort: new Abort() }
    running.add(id, call)
    const sink = sinkOf(id, call)
    try {
      const parts = unpackCall(packed)
      const peer = await upstream.open(parts.caller)
      peer.dispatch({ kind: 'request', ...parts, signal: call.abort, sink })
    } catch (error) {
      void deliver(sink, { kind: 'failure', error: toRpcError(error) })
    }
  }

  /** No `ready` follows an abort, so a server that waits for its client is resumed here and can end the call. */
  const abort = (id: number, reason: AbortReason): void => {
    const call = running.get(id)
    call?.abort.abort(reason)
    if (reason.kind === 'closing') return // the server still ends its subscriptions
    call?.resume?.()
    running.delete(id)
  }

  const close = async (): Promise<void> => {
    await upstream.close()
    post({ kind: 'closed' })
    port.close()
  }

  const onMessage = (message: ToThread): void => {
    switch (message.kind) {
      case 'call':
        return void start(message.id, message.call)
      case 'abort':
        return abort(message.id, message.reason)
      case 'ready':
        return running.get(message.id)?.resume?.()
      case 'invoke':
        return void runOperation(message, operations, (result, moved) => port.postMessage(result, moved), log)
      case 'close':
        return void close()
    }
  }
  port.on('message', onMessage)
  post({ kind: 'started' })
}

const isLast = ({ kind }: Frame): boolean => kind === 'result' || kind === 'failure'

/** A log whose lines are written by the thread that started this one. */
export const logThrough = (port: MessagePort, known: object = {}): Log => {
  const write = (level: (typeof LEVELS)[number]) => (fields: object, message: string) => {
    const line: FromThread = { kind: 'log', level, fields: { ...known, ...fields }, message }
    port.postMessage(line)
  }
  const [debug, info, warn, error] = LEVELS.map(write) as [Log['debug'], Log['info'], Log['warn'], Log['error']]
  return { debug, info, warn, error, child: fields => logThrough(port, { ...known, ...fields }) }
}
