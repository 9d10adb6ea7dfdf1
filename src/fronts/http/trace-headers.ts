import type { IncomingHttpHeaders } from 'node:http'
import { parseTraceparent } from '../../telemetry/trace-context.ts'
import { Json } from '../../wire/json/json.ts'

/** The headers of W3C Trace Context and Baggage, which are the names of the same members of `_meta`. */
const NAMES = ['traceparent', 'tracestate', 'baggage'] as const

/** The trace context of a request in its headers; undefined if there is none. */
export const traceHeaders = (headers: IncomingHttpHeaders): ReadonlyMap<string, string> | undefined => {
  if (headers.traceparent === undefined && headers.baggage === undefined) return undefined
  return new Map(
    NAMES.flatMap(name => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    }),
  )
}

/**
 * The params with the trace context of the headers in `_meta`, which reaches servers over every transport. What the client
 * has written there itself stays as it is, and an invalid context is not copied.
 */
export const withTraceContext = (params: Json, headers: ReadonlyMap<string, string> | undefined): Json => {
  if (!headers || (!headers.has('traceparent') && !headers.has('baggage'))) return params
  const before = params.get('_meta')
  let meta = before?.isObject ? before : Json.empty
  const isTraced = meta.has('traceparent') || !parseTraceparent(headers.get('traceparent'))
  for (const name of NAMES) {
    const value = headers.get(name)
    const isOwn = name === 'baggage' ? meta.has(name) : isTraced
    if (value !== undefined && !isOwn) meta = meta.with(name, value)
  }
  return meta === before || meta === Json.empty ? params : params.with('_meta', meta)
}
