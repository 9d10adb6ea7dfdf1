import { failWith } from '../protocol/deliver.ts'
import { ERRORS } from '../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { createParamHeaders, readParamHeaders } from '../protocol/param-headers.ts'
import { listItems, sendRequest } from '../protocol/send-request.ts'
import { Json } from '../wire/json/json.ts'

const ANNOTATION = 'x-mcp-header'

/**
 * Sends tool arguments in headers where the input schema says so (`x-mcp-header`), for callers that cannot: legacy clients
 * and pipes. A modern HTTP client does it itself.
 */
export class ParamHeaderWriter {
  #schemas: Map<string, Json> | undefined // of tools with annotations, by name; undefined: never listed

  wrap(dispatch: Dispatch): Dispatch {
    return exchange => {
      if (exchange.method === 'tools/list') return this.#list(exchange, dispatch)
      if (exchange.method !== 'tools/call') return dispatch(exchange)
      if (this.#schemas) this.#call(exchange, dispatch, false)
      else this.#refreshAndCall(exchange, dispatch, false)
    }
  }

  /** A tool with invalid annotations must not be used; a client that does not know them cannot tell. */
  #list(exchange: Exchange, dispatch: Dispatch): void {
    dispatch({
      ...exchange,
      sink: frame => {
        const tools = frame.kind === 'result' ? frame.result.get('tools') : undefined
        if (frame.kind !== 'result' || !tools || !isAnnotated(tools)) return exchange.sink(frame)
        this.#schemas ??= new Map()
        for (const tool of tools.elements()) addSchema(tool, this.#schemas)
        return exchange.sink({ kind: 'result', result: frame.result.with('tools', tools.map(keepUsable)) })
      },
    })
  }

  #call(exchange: Exchange, dispatch: Dispatch, isRetry: boolean): void {
    if (exchange.signal.reason) return
    const schema = this.#schemas?.get(exchange.params.get('name')?.asString() ?? '')
    const headers = schema ? createParamHeaders(schema, exchange.params.get('arguments') ?? Json.empty) : []
    const caller =
      headers.length === 0
        ? exchange.caller
        : { ...exchange.caller, headers: new Map([...exchange.caller.headers, ...headers]) }
    const sink = (frame: Frame): void | Promise<void> => {
      const isStale = !isRetry && frame.kind === 'failure' && frame.error.code === ERRORS.headerMismatch.code
      if (!isStale) return exchange.sink(frame)
      this.#refreshAndCall(exchange, dispatch, true)
    }
    dispatch({ ...exchange, caller, sink })
  }

  /** If the list fails, the call goes on without headers: its own error says what is wrong. */
  #refreshAndCall(exchange: Exchange, dispatch: Dispatch, isRetry: boolean): void {
    void this.#refresh(dispatch, exchange.caller)
      .catch(() => {})
      .then(() => this.#call(exchange, dispatch, isRetry))
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }

  async #refresh(dispatch: Dispatch, caller: Caller): Promise<void> {
    const found = new Map<string, Json>()
    for await (const tool of listItems('tools', params => sendRequest(dispatch, caller, 'tools/list', params)))
      addSchema(tool, found)
    this.#schemas = found
  }
}

const addSchema = (tool: Json, schemas: Map<string, Json>): void => {
  const name = tool.get('name')?.asString()
  const schema = tool.get('inputSchema')
  if (name !== undefined && schema && isAnnotated(tool)) schemas.set(name, schema)
}

const isAnnotated = (json: Json): boolean => json.toBytes().includes(ANNOTATION)

const keepUsable = (tool: Json): Json | undefined => {
  const schema = tool.get('inputSchema')
  return schema && readParamHeaders(schema).kind === 'invalid' ? undefined : tool
}
