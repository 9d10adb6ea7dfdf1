import { OperationError } from '../../protocol/operation-error.ts'
import type { Log } from '../../telemetry/log.ts'
import type { OperationResult, ToThread } from './messages.ts'

/** What a server in a thread does for the gateway itself, by name: no client reaches these. */
export type ThreadOperations = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>

type Invoke = Extract<ToThread, { kind: 'invoke' }>

/** Sends a message; streams in `values` are moved instead of cloned. */
type Post<Message> = (message: Message, moved: readonly ReadableStream[]) => void

/** The side that calls. */
export const createInvoker = (post: Post<Invoke>) => {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let nextId = 0
  return {
    get size() {
      return waiting.size
    },
    invoke: (operation: string, args: readonly unknown[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const id = nextId++
        post({ kind: 'invoke', id, operation, args }, args.flatMap(streamsIn))
        waiting.set(id, { resolve, reject })
      }),
    settle: (result: OperationResult): void => {
      const { resolve, reject } = waiting.get(result.id) ?? {}
      waiting.delete(result.id)
      if (result.kind === 'returned') resolve?.(result.value)
      else reject?.(new OperationError(result.refusal, result.message))
    },
    failAll: (message: string): void => {
      for (const { reject } of waiting.values()) reject(new OperationError('busy', message))
      waiting.clear()
    },
  }
}

/** The side that runs them, in the thread. */
export const runOperation = async (
  { id, operation, args }: Invoke,
  operations: ThreadOperations,
  post: Post<OperationResult>,
  log: Log | undefined,
): Promise<void> => {
  try {
    const run = Object.hasOwn(operations, operation) ? operations[operation] : undefined
    if (!run) throw new OperationError('missing', `There is no operation "${operation}"`)
    const value = await run(...(args as never[]))
    post({ kind: 'returned', id, value }, streamsIn(value))
  } catch (error) {
    const isRefused = error instanceof OperationError
    if (!isRefused) log?.error({ err: error, operation }, 'operation of a built-in server failed')
    const refusal = isRefused ? error.refusal : 'failed'
    const message = isRefused ? error.message : 'Internal error; see the log of the gateway'
    post({ kind: 'refused', id, refusal, message }, [])
  }
}

/** The streams of a value or of its members. */
const streamsIn = (value: unknown): ReadableStream[] => {
  if (value instanceof ReadableStream) return [value]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.values(value).filter(member => member instanceof ReadableStream)
}
