import { failWith } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import { LIST_CHANGES } from '../../protocol/notifications.ts'
import { listItems, sendRequest } from '../../protocol/send-request.ts'
import type { Json } from '../../wire/json/json.ts'
import { callAsTask } from './required-task.ts'

/** `required`: the tool can only be called as a task. */
export type ToolTaskSupport = 'required' | 'optional' | 'forbidden'

const MARK = 'taskSupport'
const MOST_TOOLS = 20_000

/**
 * Which tools of a server of 2025-11-25 run as tasks. That is read from its list and not from errors: servers refuse a call
 * without a task in several ways.
 */
export class TaskTools {
  #support: Map<string, ToolTaskSupport> | undefined // undefined: not read yet
  #reading: Promise<void> | undefined

  /** Runs calls of tools that need a task as one; other messages pass. */
  wrap(dispatch: Dispatch): Dispatch {
    return exchange => {
      if (exchange.kind !== 'request') return dispatch(exchange)
      if (exchange.method === 'tools/list') return dispatch(this.#learning(exchange))
      if (exchange.method === 'subscriptions/listen') return dispatch(this.#forgetting(exchange))
      if (exchange.method !== 'tools/call' || exchange.params.has('task')) return dispatch(exchange)
      if (exchange.task?.serverTask !== undefined) return callAsTask(exchange, dispatch)
      this.whenKnown(exchange, dispatch, support => {
        if (support === 'required') callAsTask(exchange, dispatch)
        else if (!exchange.signal.reason) dispatch(exchange)
      })
    }
  }

  /** Calls `next` with the support of the tool that an exchange calls, at once if it is known. */
  whenKnown(exchange: Exchange, dispatch: Dispatch, next: (support: ToolTaskSupport) => void): void {
    const name = exchange.params.get('name')?.asString() ?? ''
    if (this.#support) return next(this.#support.get(name) ?? 'forbidden')
    this.#reading ??= this.#read(dispatch, exchange.caller).finally(() => {
      this.#reading = undefined
    })
    this.#reading
      .then(() => next(this.#support?.get(name) ?? 'forbidden'))
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }

  /** If the list cannot be read, the call itself shows what is wrong. */
  async #read(dispatch: Dispatch, caller: Caller): Promise<void> {
    const found = new Map<string, ToolTaskSupport>()
    const page = (params: Json): Promise<Json> => sendRequest(dispatch, caller, 'tools/list', params)
    try {
      for await (const tool of listItems('tools', page)) addSupport(tool, found)
      this.#support = found
    } catch {
      // The next call reads it again.
    }
  }

  /** A changed list is read again by the next call. */
  #forgetting(exchange: Exchange): Exchange {
    return {
      ...exchange,
      sink: frame => {
        if (frame.kind === 'notice' && frame.method === LIST_CHANGES.tools.method) this.#support = undefined
        return exchange.sink(frame)
      },
    }
  }

  #learning(exchange: Exchange): Exchange {
    return {
      ...exchange,
      sink: frame => {
        const tools = frame.kind === 'result' ? frame.result.get('tools') : undefined
        if (tools && this.#support && tools.toBytes().includes(MARK))
          for (const tool of tools.elements()) addSupport(tool, this.#support)
        return exchange.sink(frame)
      },
    }
  }
}

const addSupport = (tool: Json, known: Map<string, ToolTaskSupport>): void => {
  const name = tool.get('name')?.asString()
  const support = tool.at('execution', MARK)?.asString()
  if (name === undefined || known.size >= MOST_TOOLS) return
  if (support === 'required' || support === 'optional') known.set(name, support)
  else known.delete(name)
}
