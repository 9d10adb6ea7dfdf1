import { Worker } from 'node:worker_threads'
import { deliver } from '../../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Peer, Upstream } from '../../protocol/exchange.ts'
import { OperationError } from '../../protocol/operation-error.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { CallTable } from '../../std/call-table.ts'
import type { Log } from '../../telemetry/log.ts'
import { type FromThread, packCall, type ToThread, unpackFrame } from './messages.ts'
import { createInvoker } from './operations.ts'
import { workerArguments } from './worker-arguments.ts'

export interface ThreadOptions {
  readonly entry: URL // the module to start, without its extension; it calls hostUpstream
  readonly data: unknown // for the entry, as `workerData`
  readonly name: string
  readonly log: Log
}

/** A server that also does something for the gateway itself. */
export interface ThreadedServer extends Upstream {
  /** Runs an operation in the thread; rejects with an OperationError. */
  invoke(operation: string, args: readonly unknown[]): Promise<unknown>
}

export const isThreadedServer = (upstream: Upstream | undefined): upstream is ThreadedServer =>
  upstream !== undefined && 'invoke' in upstream

/** Runs a built-in server on its own thread, so that its work does not delay callers of other servers. */
export const startInThread = ({ entry, data, name, log }: ThreadOptions): ThreadedServer => {
  const pending = new CallTable<number, Exchange>()
  const opening = new Set<(failure?: RpcFailure) => void>() // callers that wait for the thread to start
  const closing = rpcError('internal', `The server ${name} is closing`)
  const stopped = rpcError('internal', `The server ${name} stopped unexpectedly; try again`)
  let nextId = 0
  let worker: Worker | undefined
  let isStarted = false
  let closed: Promise<void> | undefined
  let reportClosed = (): void => {}

  /** The thread keeps the process alive only while a caller waits for it. */
  const settle = (id: number): Exchange | undefined => {
    const exchange = pending.delete(id)
    release()
    return exchange
  }
  const finish = (id: number, frame: Frame): void => {
    const exchange = settle(id)
    if (exchange) void deliver(exchange.sink, frame)
  }
  const release = (): void => {
    if (pending.size === 0 && opening.size === 0 && operations.size === 0 && !closed) worker?.unref()
  }
  const endOpening = (failure?: RpcFailure): void => {
    for (const end of opening) end(failure)
    opening.clear()
    release()
  }

  const start = (): Worker => {
    const started = new Worker(...workerArguments(entry, data, name))
    started.on('message', (message: FromThread) => onMessage(message, started))
    started.on('error', error => log.error({ err: error }, 'thread of a built-in server failed'))
    started.on('exit', () => {
      worker = undefined // the next call starts a new one
      isStarted = false
      const error = closed ? closing : stopped
      endOpening(new RpcFailure(error))
      for (const id of pending.keys) finish(id, { kind: 'failure', error })
      operations.failAll(error.message)
      reportClosed()
    })
    started.unref()
    worker = started
    return started
  }
  const post = (message: ToThread): void => (worker ?? start()).postMessage(message)
  const operations = createInvoker((message, moved) => (worker ?? start()).postMessage(message, moved))

  const onMessage = (message: FromThread, from: Worker): void => {
    switch (message.kind) {
      case 'started':
        isStarted = true
        return endOpening()
      case 'log':
        return log[message.level](message.fields, message.message)
      case 'returned':
      case 'refused':
        operations.settle(message)
        return release()
      case 'closed':
        return void from.terminate()
      case 'frame': {
        const { id, frame } = message
        if (frame.kind !== 'notice') return finish(id, unpackFrame(frame))
        const exchange = pending.get(id)
        if (exchange) notify(id, exchange, unpackFrame(frame))
      }
    }
  }

  /** The thread sends the next notification when the client has taken this one. */
  const notify = (id: number, { sink }: Exchange, notice: Frame): void => {
    const onBroken = (): void => {
      if (settle(id)) post({ kind: 'abort', id, reason: { kind: 'gone' } })
    }
    const ready = (): void => (pending.get(id) ? post({ kind: 'ready', id }) : undefined)
    const behind = deliver(sink, notice, onBroken)
    if (behind) void behind.then(ready)
    else ready()
  }

  const dispatch = (exchange: Exchange): void => {
    if (exchange.kind === 'notification' || exchange.signal.reason) return
    if (closed) return void deliver(exchange.sink, { kind: 'failure', error: closing })
    const id = nextId++
    post({ kind: 'call', id, call: packCall(exchange) })
    worker?.ref()
    const stopListening = exchange.signal.onAbort(reason => {
      if (pending.get(id)) post({ kind: 'abort', id, reason })
      if (reason.kind !== 'closing') settle(id) // at a shutdown the server ends its subscriptions itself
    })
    const sink: Exchange['sink'] = frame => {
      if (frame.kind !== 'notice') stopListening()
      return exchange.sink(frame)
    }
    pending.add(id, { ...exchange, sink })
  }

  /** Loading the server takes a while; this is part of opening it, so it does not count as a slow answer. */
  const waitForStart = (): Promise<void> =>
    new Promise((resolve, reject) => {
      opening.add(failure => (failure ? reject(failure) : resolve()))
      ;(worker ?? start()).ref()
    })

  const close = async (): Promise<void> => {
    if (!worker) return
    const ended = new Promise<void>(resolve => {
      reportClosed = resolve
    })
    worker.ref()
    post({ kind: 'close' })
    await ended
  }

  const invoke: ThreadedServer['invoke'] = async (operation, args) => {
    if (closed) throw new OperationError('busy', closing.message)
    const result = operations.invoke(operation, args)
    worker?.ref()
    return result
  }

  const peer: Peer = { revision: MODERN, asks: true, dispatch }
  start()
  return {
    open: async () => {
      if (closed) throw new RpcFailure(closing)
      if (!isStarted) await waitForStart()
      return peer
    },
    invoke,
    close: () => (closed ??= close()),
  }
}
