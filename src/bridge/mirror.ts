import { NEVER } from '../protocol/abort.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { paramHeadersOf, readParamHeaders } from '../protocol/param-headers.ts'
import { Json } from '../wire/json.ts'

const HEADER_MISMATCH = -32020
const ANNOTATION = 'x-mcp-header'
const MOST_PAGES = 64

/** Gives legacy callers of one modern server what its own clients do: arguments repeated in headers where a tool says so. */
export interface Mirror {
  wrap(dispatch: Dispatch): Dispatch
}

export const createMirror = (): Mirror => {
  let schemas: Map<string, Json> | undefined // of tools with annotations; undefined: never listed

  const learn = (list: Json, into: Map<string, Json>): void => {
    for (const tool of list.get('tools')?.elements() ?? []) {
      const name = tool.get('name')?.asString()
      const schema = tool.get('inputSchema')
      if (name !== undefined && schema && isAnnotated(tool)) into.set(name, schema)
    }
  }

  const refresh = async (dispatch: Dispatch, caller: Caller): Promise<void> => {
    const found = new Map<string, Json>()
    let cursor: Json | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const list = await listOnce(dispatch, caller, cursor)
      if (!list) return // the call itself will tell what is wrong
      learn(list, found)
      cursor = list.get('nextCursor')
      if (!cursor) break
    }
    schemas = found
  }

  const call = (exchange: Exchange, dispatch: Dispatch, isAgain: boolean): void => {
    const schema = schemas?.get(exchange.params.get('name')?.asString() ?? '')
    const headers = schema ? paramHeadersOf(schema, exchange.params.get('arguments') ?? Json.empty) : []
    const caller =
      headers.length === 0
        ? exchange.caller
        : { ...exchange.caller, headers: new Map([...exchange.caller.headers, ...headers]) }
    const sink = (frame: Frame): void | Promise<void> => {
      const isStale = !isAgain && frame.kind === 'failure' && frame.error.code === HEADER_MISMATCH
      if (!isStale) return exchange.sink(frame)
      void refresh(dispatch, exchange.caller).finally(() => call(exchange, dispatch, true))
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
        learn(frame.result, schemas)
        return exchange.sink({ kind: 'result', result: frame.result.with('tools', tools.map(keepUsable)) })
      },
    })

  const wrap =
    (dispatch: Dispatch): Dispatch =>
    exchange => {
      if (exchange.method === 'tools/list') return list(exchange, dispatch)
      if (exchange.method !== 'tools/call') return dispatch(exchange)
      if (schemas) return call(exchange, dispatch, false)
      void refresh(dispatch, exchange.caller).finally(() => call(exchange, dispatch, false))
    }

  return { wrap }
}

const isAnnotated = (json: Json): boolean => json.toBytes().includes(ANNOTATION)

const keepUsable = (tool: Json): Json | undefined => {
  const schema = tool.get('inputSchema')
  return schema && readParamHeaders(schema).kind === 'invalid' ? undefined : tool
}

const listOnce = (dispatch: Dispatch, caller: Caller, cursor: Json | undefined): Promise<Json | undefined> =>
  new Promise(resolve => {
    dispatch({
      kind: 'request',
      method: 'tools/list',
      params: cursor ? Json.of({ cursor }) : Json.empty,
      caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind === 'result') resolve(frame.result)
        else if (frame.kind === 'failure') resolve(undefined)
      },
    })
  })
