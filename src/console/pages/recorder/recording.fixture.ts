import type { RecordedMessage, Recording } from '../../../admin/api/recorder.ts'
import { META } from '../../../protocol/meta.ts'
import { MODERN, NEWEST_LEGACY } from '../../../protocol/revisions.ts'

type MessageInit = Partial<RecordedMessage> & Pick<RecordedMessage, 'side' | 'direction' | 'kind'>

/** A message with `value` as its text. */
export const recordedMessage = (atMs: number, init: MessageInit, value: unknown): RecordedMessage => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return {
    atMs,
    text,
    bytes: text.length,
    isCut: false,
    ...(init.side === 'server' && { server: 'notes' }),
    ...init,
  }
}

const ENVELOPE = {
  [META.protocolVersion]: MODERN,
  [META.clientInfo]: { name: 'claude-code', version: '3.1.0' },
  [META.clientCapabilities]: { elicitation: { form: {}, url: {} }, sampling: {} },
}
const FORM = {
  type: 'object',
  properties: { title: { type: 'string', title: 'Title of the note' } },
  required: ['title'],
}
const STATE = 'gw1.k1.Yt0vR2m7c5yXw9bQeFz3nA'

const SERVERS = [{ name: 'notes', dialect: 'stdio', revision: NEWEST_LEGACY }]
const SUMMARY = {
  workspace: 'default',
  principal: 'local',
  dialect: 'stateless',
  revision: MODERN,
  client: 'claude-code 3.1.0',
  method: 'tools/call',
  subject: 'notes__add_note',
  servers: SERVERS,
  isTranslated: true,
} as const

const [FROM_CLIENT, TO_CLIENT] = [
  { side: 'client', direction: 'in' },
  { side: 'client', direction: 'out' },
] as const
const [TO_SERVER, FROM_SERVER] = [
  { side: 'server', direction: 'out' },
  { side: 'server', direction: 'in' },
] as const

/** A modern client calls a tool of a legacy server, which asks a question: the call is parked. */
export const parkedRecording = (id = '41', at = Date.UTC(2026, 7, 28, 9, 30, 12, 345)): Recording => {
  const all = [
    recordedMessage(
      0,
      {
        ...FROM_CLIENT,
        kind: 'request',
        method: 'tools/call',
        headers: [
          ['mcp-protocol-version', MODERN],
          ['mcp-method', 'tools/call'],
          ['mcp-name', 'notes__add_note'],
        ],
      },
      {
        jsonrpc: '2.0',
        id: 7,
        method: 'tools/call',
        params: {
          name: 'notes__add_note',
          arguments: { text: 'Ship it' },
          _meta: { ...ENVELOPE, progressToken: 'p-7' },
        },
      },
    ),
    recordedMessage(
      1.4,
      { ...TO_SERVER, kind: 'request', method: 'tools/call' },
      {
        jsonrpc: '2.0',
        id: 31,
        method: 'tools/call',
        params: { name: 'add_note', arguments: { text: 'Ship it' }, _meta: { progressToken: 31 } },
      },
    ),
    recordedMessage(
      22,
      { ...FROM_SERVER, kind: 'notification', method: 'notifications/progress' },
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 31, progress: 1, total: 2 },
      },
    ),
    recordedMessage(
      22.3,
      { ...TO_CLIENT, kind: 'notification', method: 'notifications/progress' },
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'p-7', progress: 1, total: 2 },
      },
    ),
    recordedMessage(
      48.5,
      { ...FROM_SERVER, kind: 'question', method: 'elicitation/create' },
      {
        jsonrpc: '2.0',
        id: 4,
        method: 'elicitation/create',
        params: { mode: 'form', message: 'What is the title?', requestedSchema: FORM },
      },
    ),
    recordedMessage(
      79.1,
      { ...TO_CLIENT, kind: 'result' },
      {
        jsonrpc: '2.0',
        id: 7,
        result: {
          resultType: 'input_required',
          inputRequests: {
            q1: {
              method: 'elicitation/create',
              params: { mode: 'form', message: '[notes] What is the title?', requestedSchema: FORM },
            },
          },
          requestState: STATE,
        },
      },
    ),
  ]
  return recordingOf({ ...SUMMARY, id, order: Number(id), at, outcome: 'input_required', durationMs: 79.3 }, all)
}

/** The retry that answers the question of `parkedRecording`. */
export const retryRecording = (id = '42', at = Date.UTC(2026, 7, 28, 9, 30, 18, 702)): Recording => {
  const answer = { action: 'accept', content: { title: 'Release' } }
  const content = [{ type: 'text', text: 'Added "Release"' }]
  const all = [
    recordedMessage(
      0,
      { ...FROM_CLIENT, kind: 'request', method: 'tools/call' },
      {
        jsonrpc: '2.0',
        id: 8,
        method: 'tools/call',
        params: {
          name: 'notes__add_note',
          arguments: { text: 'Ship it' },
          inputResponses: { q1: answer },
          requestState: STATE,
          _meta: ENVELOPE,
        },
      },
    ),
    recordedMessage(0.8, { ...TO_SERVER, kind: 'answer' }, { jsonrpc: '2.0', id: 4, result: answer }),
    recordedMessage(12.4, { ...FROM_SERVER, kind: 'result' }, { jsonrpc: '2.0', id: 31, result: { content } }),
    recordedMessage(
      13,
      { ...TO_CLIENT, kind: 'result' },
      {
        jsonrpc: '2.0',
        id: 8,
        result: {
          content,
          resultType: 'complete',
          _meta: { [META.serverInfo]: { name: 'notes', version: '1.4.2' } },
        },
      },
    ),
  ]
  return recordingOf({ ...SUMMARY, id, order: Number(id), at, outcome: 'ok', durationMs: 13.1 }, all)
}

type FixtureSummary = Omit<Recording, 'all' | 'dropped' | 'messages' | 'bytes'>

/** A recording of these messages. */
export const recordingOf = (summary: FixtureSummary, all: readonly RecordedMessage[]): Recording => ({
  ...summary,
  all,
  dropped: 0,
  messages: all.length,
  bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
})
