import { failWith } from '../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { createParamHeaders, readParamHeaders } from '../protocol/param-headers.ts'
import { listItems, sendRequest } from '../protocol/send-request.ts'
import { Json } from '../wire/json/json.ts'

const HEADER_MISMATCH = -32020
const ANNOTATION = 'x-mcp-header'

/** Does for callers without headers (legacy ones, pipes) what a modern HTTP client does itself: repeats arguments in headers. */
export interface Mirror {
  wrap(dispatch: Dispatch): Dispatch
}

export const createMirror = (): Mirror => {
  let schemas: Map<string, Json> | undefined // of tools with annotations; undefined: never listed

  const learn = (tool: Json, into: Map<string, Json>): void => {
    const name = tool.get('name')?.asString()
    const schema = tool.get('inputSchema')
    if (name !== undefined && schema && isAnnotated(tool)) into.set(name, schema)
  }

  const refresh = async (dispatch: Dispatch, caller: Caller): Promise<void> => {
    const found = new Map<string, Json>()
    for await (const tool of listItems('tools', params => sendRequest(dispatch, caller, 'tools/list', params)))
      learn(tool, found)
    schemas = found
  }

  /** A list that fails is no reason to hold the call back: it will tell itself what is wrong. */
  const refreshed = (dispatch: Dispatch, caller: Caller): Promise<void> => refresh(dispatch, caller).catch(() => {})

  const call = (exchange: Exchange, dispatch: Dispatch, isAgain: boolean): void => {
    const schema = schemas?.get(exchange.params.get('name')?.asString() ?? '')
    const headers = schema ? createParamHeaders(schema, exchange.params.get('arguments') ?? Json.empty) : []
    const caller =
      headers.length === 0
        ? exchange.caller
        : { ...exchange.caller, headers: new Map([...exchange.caller.headers, ...headers]) }
    const sink = (frame: Frame): void | Promise<void> => {
      const isStale = !isAgain && frame.kind === 'failure' && frame.error.code === HEADER_MISMATCH
      if (!isStale) return exchange.sink(frame)
      void refreshed(dispatch, exchange.caller)
        .then(() => call(exchange, dispatch, true))
        .catch((thrown: unknown) => failWith(exchange, thrown))
    }
    if (!exchange.signal.reason) dispatch({ ...exchange, caller, sink })
  }

  /** Tools whose annotations are broken must not be used; a client that knows nothing of them cannot tell. */
  const list = (exchange: Exchange, dispatch: Dispatch): void =>
    dispatch({
      ...exchange,
      sink: frame => {
        const tools = frame.kind === 'result' ? frame.result.get('tools') : undefined
        if (frame.kind !== 'result' || !tools || !isAnnotated(tools)) return exchange.sink(frame)
        schemas ??= new Map()
        for (const tool of tools.elements()) learn(tool, schemas)
        return exchange.sink({ kind: 'result', result: frame.result.with('tools', tools.map(keepUsable)) })
      },
    })

  const wrap =
    (dispatch: Dispatch): Dispatch =>
    exchange => {
      if (exchange.method === 'tools/list') return list(exchange, dispatch)
      if (exchange.method !== 'tools/call') return dispatch(exchange)
      if (schemas) return call(exchange, dispatch, false)
      void refreshed(dispatch, exchange.caller)
        .then(() => call(exchange, dispatch, false))
        .catch((thrown: unknown) => failWith(exchange, thrown))
    }

  return { wrap }
}

const isAnnotated = (json: Json): boolean => json.toBytes().includes(ANNOTATION)

const keepUsable = (tool: Json): Json | undefined => {
  const schema = tool.get('inputSchema')
  return schema && readParamHeaders(schema).kind === 'invalid' ? undefined : tool
}
