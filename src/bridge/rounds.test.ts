import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NEVER } from '../protocol/cancellation.ts'
import type { Exchange, Frame, Question } from '../protocol/exchange.ts'
import { MODERN, REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json, type Plain, type PlainObject } from '../wire/json/json.ts'
import { type Bridge, createBridge } from './bridge.ts'

const LEGACY = REVISIONS.filter(revision => revision !== MODERN)
const FORM = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const LINK = { mode: 'url', message: 'Sign in', url: 'https://a.example' }

let bridge: Bridge
beforeEach(() => {
  bridge = createBridge({ questionTtlMs: 60_000 })
})
afterEach(() => bridge.close())

/** A legacy client's call to a modern server that asks this once. */
const callAsking = (revision: Revision, capabilities: Plain, params: Plain) =>
  callGetting(revision, capabilities, { inputRequests: { q: { method: 'elicitation/create', params } } })

/** A legacy client's call to a modern server that first answers `input_required` with these members. */
const callGetting = async (revision: Revision, capabilities: Plain, asking: PlainObject) => {
  const sent: Exchange[] = []
  const frames: Frame[] = []
  const upstream = bridge.wrap(
    {
      open: async () => ({
        revision: MODERN,
        asks: false,
        dispatch: exchange => {
          const isCall = exchange.method === 'tools/call'
          if (!isCall) return void exchange.sink({ kind: 'result', result: Json.of({ tools: [] }) })
          sent.push(exchange)
          const result = exchange.params.has('inputResponses')
            ? { resultType: 'complete', content: [] }
            : { resultType: 'input_required', ...asking }
          void exchange.sink({ kind: 'result', result: Json.of(result) })
        },
      }),
      close: async () => {},
    },
    'far',
  )
  const who = { workspace: 'w', principal: 'me', revision, capabilities: Json.of(capabilities), headers: new Map() }
  const peer = await upstream.open(who)
  peer.dispatch({
    kind: 'request',
    method: 'tools/call',
    params: Json.of({ name: 't' }),
    caller: who,
    signal: NEVER,
    sink: frame => void frames.push(frame),
  })
  await new Promise(setImmediate) // the list of tools is looked at first
  const asked = () => frames.filter((frame): frame is Question => frame.kind === 'question')
  const answer = () => sent[1]?.params.at('inputResponses', 'q')?.toValue()
  const result = () => {
    const last = frames.at(-1)
    return last?.kind === 'result' ? last.result.toValue() : last
  }
  return { asked, answer, result, sent, frames }
}

describe.each(LEGACY)('a client of %s before a modern server that asks', revision => {
  it('gets questions that it supports, and its answer reaches the server', async () => {
    const { asked, answer, result } = await callAsking(revision, { elicitation: {} }, FORM)
    expect(asked().map(({ params }) => params.toValue())).toEqual([FORM])
    asked()[0]?.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { name: 'Ada' } }) })
    expect(answer()).toEqual({ action: 'accept', content: { name: 'Ada' } })
    expect(result()).toEqual({ content: [] })
  })

  it('gets no question that it does not support: the tool call fails with text, and nothing is cancelled at the server', async () => {
    const { asked, sent, result } = await callAsking(revision, {}, FORM)
    expect([asked(), sent.length]).toEqual([[], 1])
    expect(result()).toMatchObject({ isError: true })
  })

  it.each([{}, { inputRequests: {} }])('gets an error at once if the server asks for nothing: %j', async asking => {
    const { sent, result } = await callGetting(revision, { elicitation: {} }, asking)
    expect(sent).toHaveLength(1)
    expect(result()).toMatchObject({
      isError: true,
      content: [{ text: 'The server asked for input, but sent neither a question nor a state to continue with' }],
    })
  })

  it.each([-32601, -32602])('that did not show the question after all (%i) cancels nothing', async code => {
    const { asked, sent, result } = await callAsking(revision, { elicitation: {} }, FORM)
    asked()[0]?.answer({ kind: 'error', error: { code, message: 'no form here' } })
    expect(sent).toHaveLength(1)
    expect(result()).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('no form here') }] })
  })

  it('gets a URL elicitation with an id: that of the server, or a new one', async () => {
    const capabilities = { elicitation: { url: {} } }
    const named = await callAsking(revision, capabilities, { ...LINK, elicitationId: 'own' })
    expect(named.asked()[0]?.params.toValue()).toEqual({ ...LINK, elicitationId: 'own' })
    named.asked()[0]?.answer({ kind: 'result', result: Json.of({ action: 'accept' }) })
    expect(named.frames.at(-2)).toMatchObject({ kind: 'notice', method: 'notifications/elicitation/complete' })
    const nameless = await callAsking(revision, capabilities, LINK)
    expect(nameless.asked()[0]?.params.get('elicitationId')?.asString()).toMatch(/^[0-9a-f-]{36}$/)
  })
})
