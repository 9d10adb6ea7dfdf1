import { expect, test } from 'vitest'
import { NEVER } from '../protocol/cancellation.ts'
import type { Answer, Dispatch, Exchange, Frame, Question } from '../protocol/exchange.ts'
import { MODERN, NEWEST_LEGACY, REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import { LegacySubscriptions } from './subscriptions.ts'
import { translate } from './translate.ts'

const PLAIN_FORMS = REVISIONS[2] // the last revision without choices of several

/** A call by a client of that revision; what the server sinks is given by the test. */
const call = (
  revision: Revision,
  server: Revision,
  sink: (frame: Frame) => void,
  capabilities: Plain = { elicitation: {} },
): Exchange => {
  let below: Exchange | undefined
  const keep: Dispatch = exchange => {
    below = exchange
  }
  const dispatch = translate(server, keep, new LegacySubscriptions())
  const caller = { workspace: 'w', principal: 'p', revision, capabilities: Json.of(capabilities), headers: new Map() }
  dispatch({ kind: 'request', method: 'tools/call', params: Json.of({ name: 't' }), caller, signal: NEVER, sink })
  if (!below) throw new Error('nothing was dispatched')
  return below
}

const question = (method: string, params: Plain, answers: unknown[]): Question => ({
  kind: 'question',
  method,
  params: Json.of(params),
  withdrawn: NEVER,
  answer: (reply: Answer) => answers.push(reply.kind === 'result' ? reply.result.toValue() : reply),
})

const CHOICE = {
  mode: 'form',
  message: 'Which?',
  requestedSchema: {
    type: 'object',
    properties: { colours: { type: 'array', title: 'Colours', items: { enum: ['red', 'blue'] }, minItems: 1 } },
    required: ['colours'],
  },
}

test('a choice of several is asked as checkboxes, and again while the answer breaks its bounds', () => {
  const asked: Question[] = []
  const answers: unknown[] = []
  const below = call(PLAIN_FORMS, MODERN, frame => frame.kind === 'question' && asked.push(frame))
  void below.sink(question('elicitation/create', CHOICE, answers))
  asked[0]?.answer({ kind: 'result', result: Json.of({ action: 'accept', content: {} }) })
  expect(asked.map(({ params }) => params.get('message')?.asString())).toEqual([
    'Which?',
    'Colours: choose at least 1\n\nWhich?',
  ])
  expect(answers).toEqual([])
  asked[1]?.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { 'colours — blue': true } }) })
  expect(answers).toEqual([{ action: 'accept', content: { colours: ['blue'] } }])
})

test('after three invalid answers the question is cancelled', () => {
  const answers: unknown[] = []
  let asked = 0
  const below = call(PLAIN_FORMS, MODERN, frame => {
    if (frame.kind !== 'question') return
    asked++
    frame.answer({ kind: 'result', result: Json.of({ action: 'accept', content: {} }) })
  })
  void below.sink(question('elicitation/create', CHOICE, answers))
  expect(asked).toBe(3)
  expect(answers).toEqual([{ action: 'cancel' }])
})

const LINK = { mode: 'url', url: 'https://a.example', elicitationId: 'e', message: 'Sign in' }
const TOOLS = { tools: [], messages: [] }
const LEGACY = REVISIONS.filter(revision => revision !== MODERN && revision !== NEWEST_LEGACY)

test.each(LEGACY)('a question that the client does not support is refused, and never shown: %s', revision => {
  const answers: unknown[] = []
  const refused = (declared: Plain, method: string, params: Plain) =>
    call(revision, NEWEST_LEGACY, () => expect.unreachable(), declared).sink(question(method, params, answers))
  void refused({}, 'elicitation/create', CHOICE)
  void refused({ elicitation: {} }, 'elicitation/create', LINK)
  void refused({ elicitation: { url: {} } }, 'elicitation/create', CHOICE)
  void refused({}, 'sampling/createMessage', { messages: [] })
  void refused({ sampling: {} }, 'sampling/createMessage', TOOLS)
  void refused({}, 'roots/list', {})
  expect(answers.map(answer => (answer as { error: { code: number } }).error.code)).toEqual([
    -32601, -32602, -32602, -32601, -32602, -32601,
  ])
})

test.each(LEGACY)('a question that the client supports reaches it in every revision: %s', revision => {
  const asked: Question[] = []
  const declared = { elicitation: { form: {}, url: {} }, sampling: { tools: {} } }
  const below = call(revision, NEWEST_LEGACY, frame => frame.kind === 'question' && asked.push(frame), declared)
  void below.sink(question('elicitation/create', LINK, []))
  void below.sink(question('sampling/createMessage', TOOLS, []))
  void below.sink(question('acme/ask', { a: 1 }, []))
  void below.sink(question('constructor', { a: 1 }, []))
  void below.sink(question('elicitation/create', { message: 'Name?' }, []))
  expect(asked.map(({ params }) => params.toValue())).toEqual([LINK, TOOLS, { a: 1 }, { a: 1 }, { message: 'Name?' }])
})

test.each(LEGACY)('URLs are shown as text only to a client that cannot open them: %s', revision => {
  const frames: Frame[] = []
  const data = Json.of({ elicitations: [LINK] })
  const error = { code: -32042, message: 'Links', data }
  void call(revision, NEWEST_LEGACY, frame => frames.push(frame), { elicitation: { url: {} } }).sink({
    kind: 'failure',
    error,
  })
  void call(revision, NEWEST_LEGACY, frame => frames.push(frame)).sink({ kind: 'failure', error })
  expect(frames).toMatchObject([{ kind: 'failure', error }, { kind: 'result' }])
})

test('URLs that an older client cannot open end its call with a result that names them', () => {
  const frames: Frame[] = []
  const below = call(PLAIN_FORMS, NEWEST_LEGACY, frame => frames.push(frame))
  const data = Json.of({ elicitations: [{ mode: 'url', url: 'https://a.example', message: 'Sign in' }] })
  void below.sink({ kind: 'failure', error: { code: -32042, message: 'Links', data } })
  expect(frames).toHaveLength(1)
  expect(frames[0]?.kind === 'result' && frames[0].result.toValue()).toEqual({
    content: [{ type: 'text', text: 'Links\nSign in\nhttps://a.example' }],
    isError: true,
  })
})
