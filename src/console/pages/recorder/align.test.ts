import { describe, expect, test } from 'vitest'
import type { RecordedMessage } from '../../../admin/api/recorder.ts'
import { alignMessages, type MessagePair, readRecordedMessages } from './align.ts'
import { formatJsonPath } from './json-node.ts'
import { parkedRecording, recordedMessage, retryRecording } from './recording.fixture.ts'

const align = (messages: readonly RecordedMessage[], method = 'tools/call'): readonly MessagePair[] =>
  alignMessages(readRecordedMessages(messages, method))

/** `client ↔ server` by the indexes of the messages. */
const shown = (pairs: readonly MessagePair[]): string[] =>
  pairs.map(({ flow, client, server, isShared }) => {
    const arrow = flow === 'toServer' ? '→' : '←'
    return `${client?.index ?? '·'} ${arrow} ${server?.index ?? '·'}${isShared ? ' shared' : ''}`
  })

const [IN, OUT] = [
  { side: 'client', direction: 'in' },
  { side: 'client', direction: 'out' },
] as const
const [SENT, HEARD] = [
  { side: 'server', direction: 'out' },
  { side: 'server', direction: 'in' },
] as const

describe('alignMessages', () => {
  test('a parked call: the question is in the result', () => {
    const pairs = align(parkedRecording().all)
    expect(shown(pairs)).toEqual(['0 → 1', '3 ← 2', '5 ← 4'])
    expect(pairs[2]?.moved.map(({ from, to }) => [formatJsonPath(from), formatJsonPath(to)])).toEqual([
      ['method', 'result.inputRequests.q1.method'],
      ['params', 'result.inputRequests.q1.params'],
    ])
  })

  test('its retry: the answer is in the request', () => {
    const pairs = align(retryRecording().all)
    expect(shown(pairs)).toEqual(['0 → 1', '3 ← 2'])
    expect(pairs[0]?.moved.map(({ from, to }) => [formatJsonPath(from), formatJsonPath(to)])).toEqual([
      ['params.inputResponses.q1', 'result'],
    ])
  })

  test('a legacy client of a modern server: rounds become questions', () => {
    const ask = { method: 'elicitation/create', params: { message: 'Name?' } }
    const pairs = align([
      recordedMessage(0, { ...IN, kind: 'request', method: 'tools/call' }, { id: 1, method: 'tools/call', params: {} }),
      recordedMessage(
        1,
        { ...SENT, kind: 'request', method: 'tools/call' },
        { id: 1, method: 'tools/call', params: {} },
      ),
      recordedMessage(
        2,
        { ...HEARD, kind: 'result' },
        {
          id: 1,
          result: { resultType: 'input_required', inputRequests: { a: ask, b: { method: 'roots/list' } } },
        },
      ),
      recordedMessage(3, { ...OUT, kind: 'question', method: 'elicitation/create' }, { id: 'gw-1', ...ask }),
      recordedMessage(3, { ...OUT, kind: 'question', method: 'roots/list' }, { id: 'gw-2', method: 'roots/list' }),
      recordedMessage(5, { ...IN, kind: 'answer' }, { id: 'gw-1', result: { action: 'accept' } }),
      recordedMessage(6, { ...IN, kind: 'answer' }, { id: 'gw-2', result: { roots: [] } }),
      recordedMessage(
        7,
        { ...SENT, kind: 'request', method: 'tools/call' },
        {
          id: 2,
          method: 'tools/call',
          params: { inputResponses: { a: { action: 'accept' }, b: { roots: [] } } },
        },
      ),
      recordedMessage(8, { ...HEARD, kind: 'result' }, { id: 2, result: { resultType: 'complete', content: [] } }),
      recordedMessage(9, { ...OUT, kind: 'result' }, { id: 1, result: { content: [] } }),
    ])
    expect(shown(pairs)).toEqual(['0 → 1', '3 ← 2', '4 ← 2 shared', '5 → 7', '6 → 7 shared', '9 ← 8'])
    expect(pairs[2]?.moved[0]?.from).toEqual(['result', 'inputRequests', 'b', 'method'])
    expect(pairs.slice(3, 5).map(({ moved }) => moved[0]?.to)).toEqual([
      ['params', 'inputResponses', 'a'],
      ['params', 'inputResponses', 'b'],
    ])
  })

  test('what the gateway sends by itself has no counterpart', () => {
    const pairs = align([
      recordedMessage(0, { ...IN, kind: 'request', method: 'tools/call' }, { id: 1, params: {} }),
      recordedMessage(1, { ...SENT, kind: 'request', method: 'initialize' }, { id: 0, method: 'initialize' }),
      recordedMessage(2, { ...HEARD, kind: 'result' }, { id: 0, result: { protocolVersion: 'x' } }),
      recordedMessage(3, { ...SENT, kind: 'notification', method: 'notifications/initialized' }, {}),
      recordedMessage(4, { ...SENT, kind: 'request', method: 'tools/call' }, { id: 1, params: {} }),
      recordedMessage(5, { ...HEARD, kind: 'error' }, { id: 1, error: { code: -32042 } }),
      recordedMessage(6, { ...OUT, kind: 'result' }, { id: 1, result: { isError: true } }),
    ])
    expect(shown(pairs)).toEqual(['0 → 4', '· → 1', '· ← 2', '· → 3', '6 ← 5'])
  })

  test('keys join what has the same role and method', () => {
    const log = { kind: 'notification', method: 'notifications/message' } as const
    const pairs = align([
      recordedMessage(1, { ...HEARD, ...log, key: 'n1' }, {}),
      recordedMessage(2, { ...HEARD, ...log, key: 'n2' }, {}),
      recordedMessage(3, { ...OUT, ...log, key: 'n2' }, {}),
    ])
    expect(shown(pairs)).toEqual(['· ← 0', '2 ← 1'])
  })

  test('the answers of several servers make one result', () => {
    const list = { kind: 'request', method: 'tools/list' } as const
    const pairs = align(
      [
        recordedMessage(0, { ...IN, ...list }, { id: 1 }),
        recordedMessage(1, { ...SENT, ...list, server: 'a' }, { id: 1 }),
        recordedMessage(1, { ...SENT, ...list, server: 'b' }, { id: 1 }),
        recordedMessage(2, { ...HEARD, kind: 'result', server: 'b' }, { id: 1, result: { tools: [] } }),
        recordedMessage(3, { ...HEARD, kind: 'result', server: 'a' }, { id: 1, result: { tools: [] } }),
        recordedMessage(4, { ...OUT, kind: 'result' }, { id: 1, result: { tools: [] } }),
      ],
      'tools/list',
    )
    expect(shown(pairs)).toEqual(['0 → 1', '· → 2', '· ← 3', '· ← 4', '5 ← ·'])
  })

  test('a handshake and a discovery belong together; a cut message is paired, too', () => {
    const pairs = align(
      [
        recordedMessage(0, { ...IN, kind: 'request', method: 'initialize' }, '{"id":1,"method":"initi…'),
        recordedMessage(1, { ...SENT, kind: 'request', method: 'server/discover' }, { id: 1 }),
        recordedMessage(2, { ...HEARD, kind: 'result', method: 'server/discover' }, { id: 1, result: {} }),
        recordedMessage(3, { ...OUT, kind: 'result', method: 'initialize' }, { id: 1, result: {} }),
      ],
      'initialize',
    )
    expect(shown(pairs)).toEqual(['0 → 1', '3 ← 2'])
    expect(pairs[0]?.client?.node).toBeUndefined()
  })
})
