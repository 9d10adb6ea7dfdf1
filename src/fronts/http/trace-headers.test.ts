import { expect, test } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { traceHeaders, withTraceContext } from './trace-headers.ts'

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const OTHER = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01'
const params = (meta?: object) => Json.of({ name: 'a', ...(meta && { _meta: meta as never }) })
const metaAfter = (headers: Record<string, string>, meta?: object) =>
  withTraceContext(params(meta), traceHeaders(headers)).get('_meta')?.toValue()

test('headers are copied to _meta, beside what is there', () => {
  const headers = { traceparent: PARENT, tracestate: 'v=1', baggage: 'a=b', accept: 'x' }
  expect(metaAfter(headers)).toEqual({ traceparent: PARENT, tracestate: 'v=1', baggage: 'a=b' })
  expect(metaAfter({ baggage: 'a=b' }, { progressToken: 1 })).toEqual({ progressToken: 1, baggage: 'a=b' })
})

test('what the client has written in _meta stays, with its own state', () => {
  expect(metaAfter({ traceparent: PARENT, tracestate: 'v=1' }, { traceparent: OTHER })).toEqual({ traceparent: OTHER })
  expect(metaAfter({ baggage: 'a=b' }, { baggage: 'c=d' })).toEqual({ baggage: 'c=d' })
})

test.each([{}, { traceparent: 'a' }, { tracestate: 'v=1' }, { traceparent: `${PARENT}-more`, tracestate: 'v=1' }])(
  'nothing is copied of %j',
  headers => {
    const given = params()
    expect(withTraceContext(given, traceHeaders(headers))).toBe(given)
  },
)
