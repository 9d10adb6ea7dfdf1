import { expect, test } from 'vitest'
import { REVISIONS, type Revision } from '../protocol/revisions.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import { convertAnswer, convertQuestion } from './convert.ts'

const NEW: Revision = '2026-07-28'
const METHOD = 'sampling/createMessage'
const TEXT = { type: 'text', text: 'a' }
const IMAGE = { type: 'image', data: 'aGk=', mimeType: 'image/png' }
const AUDIO = { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }

const ask = (params: Plain, to: Revision): unknown => {
  const asked = convertQuestion(METHOD, Json.of(params), NEW, to)
  return 'rejection' in asked ? asked.rejection.code : asked.toValue()
}

test('several blocks become several messages of the same role', () => {
  const question = {
    maxTokens: 5,
    messages: [
      { role: 'user', content: [TEXT, IMAGE], _meta: { a: 1 } },
      { role: 'assistant', content: TEXT },
      { role: 'user', content: [TEXT] },
      { role: 'user', content: [] },
    ],
  }
  const split = {
    maxTokens: 5,
    messages: [
      { role: 'user', content: TEXT, _meta: { a: 1 } },
      { role: 'user', content: IMAGE, _meta: { a: 1 } },
      { role: 'assistant', content: TEXT },
      { role: 'user', content: TEXT },
    ],
  }
  expect(REVISIONS.map(to => ask(question, to))).toEqual([split, split, split, question, question])
})

test('a question in one block a message passes as it is, everywhere', () => {
  const question = Json.of({ messages: [{ role: 'user', content: TEXT }], maxTokens: 5, includeContext: 'thisServer' })
  for (const to of REVISIONS) expect(convertQuestion(METHOD, question, NEW, to)).toBe(question)
  for (const from of REVISIONS) expect(convertQuestion(METHOD, question, from, NEW)).toBe(question)
})

test.each<[string, Plain]>([
  ['tools', { tools: [{ name: 't', inputSchema: {} }], messages: [] }],
  ['a choice of tools', { toolChoice: { mode: 'none' }, messages: [] }],
  ['the use of a tool', { messages: [{ role: 'assistant', content: { type: 'tool_use' } }] }],
  ['the result of one', { messages: [{ role: 'user', content: [TEXT, { type: 'tool_result' }] }] }],
])('%s passes as it is, in every revision: it goes to clients that declare tools in sampling', (_name, question) => {
  for (const to of REVISIONS) expect(ask(question, to)).toEqual(question)
})

test('audio is refused before 2025-03-26, alone or among others', () => {
  for (const content of [AUDIO, [TEXT, AUDIO]]) {
    const question = { messages: [{ role: 'user', content }] }
    expect(ask(question, '2024-11-05')).toBe(-32602)
    expect(ask(question, '2025-03-26')).toHaveProperty('messages')
  }
})

test.each<[string, Plain, Plain]>([
  ['texts are joined', [TEXT, IMAGE, { type: 'text', text: 'b' }], { type: 'text', text: 'a\nb' }],
  ['one text is taken whole', [IMAGE, { ...TEXT, _meta: { a: 1 } }], { ...TEXT, _meta: { a: 1 } }],
  ['without text the first block is', [IMAGE, AUDIO], IMAGE],
  ['nothing is an empty text', [], { type: 'text', text: '' }],
  ['one block stays', IMAGE, IMAGE],
])('a reply for an older server: %s', (_name, content, expected) => {
  const reply = Json.of({ role: 'assistant', model: 'm', stopReason: 'endTurn', content })
  const question = Json.of({ messages: [] })
  const told = (to: Revision): unknown => {
    const answer = convertAnswer(METHOD, reply, question, NEW, to)
    return 'problem' in answer ? answer : (answer.toValue() as { content: unknown }).content
  }
  expect(REVISIONS.map(told)).toEqual([expected, expected, expected, content, content])
})

test('a reply for a newer server passes as it is', () => {
  const reply = Json.of({ role: 'assistant', model: 'm', content: TEXT })
  for (const from of REVISIONS) expect(convertAnswer(METHOD, reply, Json.empty, from, NEW)).toBe(reply)
})
