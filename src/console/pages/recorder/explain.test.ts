import { describe, expect, test } from 'vitest'
import type { RecordedMessage, Recording } from '../../../admin/api/recorder.ts'
import { META } from '../../../protocol/meta.ts'
import { MODERN, NEWEST_LEGACY, OLDEST } from '../../../protocol/revisions.ts'
import { alignMessages, readRecordedMessages } from './align.ts'
import { comparePair } from './compare-pair.ts'
import { UNEXPLAINED } from './explain.ts'
import { explainSingle } from './notes.ts'
import { parkedRecording, recordedMessage, recordingOf, retryRecording } from './recording.fixture.ts'

const alignedOf = (recording: Recording) => alignMessages(readRecordedMessages(recording.all, recording.method))

/** `verb path: sentence` of all changes of a pair. */
const explained = (recording: Recording, at: number): string[] => {
  const pair = alignedOf(recording)[at]
  const { explanations } = (pair && comparePair(pair, recording)) ?? { explanations: [] }
  return explanations.flatMap(({ text, changes }) => changes.map(({ verb, path }) => `${verb} ${path}: ${text}`))
}

interface CaseOptions {
  readonly method: string
  readonly client: string // revisions
  readonly server: string
  readonly flow?: 'toServer' | 'toClient'
  readonly kind?: RecordedMessage['kind']
}

/** The sentences for one message that becomes another. */
const sentences = (before: unknown, after: unknown, options: CaseOptions): string[] => {
  const { method, client, server, flow = 'toClient', kind = 'result' } = options
  const ends = {
    toServer: [
      ['client', 'in'],
      ['server', 'out'],
    ],
    toClient: [
      ['server', 'in'],
      ['client', 'out'],
    ],
  } as const
  const all = [before, after].map((value, at) => {
    const [side, direction] = ends[flow][at as 0 | 1]
    return recordedMessage(at, { side, direction, kind, method }, value)
  })
  const summary = parkedRecording()
  const servers = [{ name: 'notes', dialect: 'streamable', revision: server }]
  return explained(recordingOf({ ...summary, method, revision: client, servers }, all), 0)
}

describe('a parked call', () => {
  test('explains every change of the request', () => {
    const found = explained(parkedRecording(), 0)
    expect(found).toContainEqual(expect.stringMatching(/^removed header mcp-method: .*stdio/))
    expect(found).toContainEqual(expect.stringMatching(/^changed id: .*request ids of its own/))
    expect(found).toContainEqual(expect.stringMatching(/^changed params\.name: .*notes has its own name/))
    expect(found).toContainEqual(
      expect.stringMatching(/^removed params\._meta\["io\.modelcontextprotocol\/protocolVersion"\]: .*handshake/),
    )
    expect(found).toContainEqual(expect.stringMatching(/clientCapabilities"\]: .*handshake/))
    expect(found).toContainEqual(expect.stringMatching(/^changed params\._meta\.progressToken: .*token of its own/))
    expect(found.filter(line => line.includes(UNEXPLAINED.text))).toEqual([])
  })

  test('explains that the question is in a result', () => {
    const found = explained(parkedRecording(), 2)
    expect(found).toContainEqual(
      expect.stringMatching(/^moved params → result\.inputRequests\.q1\.params: .*gets no requests/),
    )
    expect(found).toContainEqual(expect.stringMatching(/^changed params\.message: .*server that asks/))
    expect(found).toContainEqual(expect.stringMatching(/^added result\.resultType: .*parked/))
    expect(found).toContainEqual(expect.stringMatching(/^added result\.requestState: .*encrypted/))
    expect(found.filter(line => line.includes(UNEXPLAINED.text))).toEqual([])
  })

  test('explains its retry', () => {
    const request = explained(retryRecording(), 0)
    expect(request).toContainEqual(expect.stringMatching(/^moved params\.inputResponses\.q1 → result: /))
    expect(request).toContainEqual(expect.stringMatching(/^removed params\.arguments: .*tool runs once/))
    expect(request).toContainEqual(expect.stringMatching(/^removed params\.requestState: /))
    expect(request.filter(line => line.includes(UNEXPLAINED.text))).toEqual([])
    expect(explained(retryRecording(), 1)).toEqual([
      expect.stringMatching(/^changed id: /),
      expect.stringMatching(/^added result\.resultType: .*requires a type/),
      expect.stringMatching(/^added result\._meta\["io\.modelcontextprotocol\/serverInfo"\]: /),
    ])
  })
})

describe('other translations', () => {
  const legacyToModern = { client: NEWEST_LEGACY, server: MODERN }
  const modernToLegacy = { client: MODERN, server: NEWEST_LEGACY }

  test('a legacy request gets the envelope', () => {
    const before = { id: 1, method: 'tools/list' }
    const meta = {
      [META.protocolVersion]: MODERN,
      [META.clientInfo]: {},
      [META.clientCapabilities]: {},
      [META.logLevel]: 'info',
    }
    const found = sentences(
      before,
      { ...before, params: { _meta: meta } },
      {
        ...legacyToModern,
        method: 'tools/list',
        flow: 'toServer',
        kind: 'request',
      },
    )
    expect(found).toHaveLength(4)
    for (const line of found) expect(line).toContain(`${MODERN} has no`)
  })

  test.each([
    ['resultType', /Results have a type since/],
    ['ttlMs', /Cache hints exist since/],
    ['cacheScope', /Cache hints exist since/],
  ])('a legacy client does not get %s', (key, text) => {
    const found = sentences(
      { id: 1, result: { tools: [], [key]: 1 } },
      { id: 1, result: { tools: [] } },
      {
        ...legacyToModern,
        method: 'tools/list',
      },
    )
    expect(found).toEqual([expect.stringMatching(text)])
  })

  test('a modern client gets cache hints', () => {
    const after = { id: 1, result: { tools: [], resultType: 'complete', ttlMs: 0, cacheScope: 'private' } }
    const found = sentences({ id: 1, result: { tools: [] } }, after, { ...modernToLegacy, method: 'tools/list' })
    expect(found.filter(line => line.includes('requires cache hints'))).toHaveLength(2)
  })

  test('names of a list, hidden tools, and where they come from', () => {
    const before = { id: 1, result: { tools: [{ name: 'a' }, { name: 'b', execution: {} }] } }
    const origin = { [META.origin]: { server: 'notes', name: 'b' } }
    const found = sentences(
      before,
      { id: 1, result: { tools: [{ name: 'notes__b', _meta: origin }] } },
      {
        ...legacyToModern,
        method: 'tools/list',
      },
    )
    expect(found).toContainEqual(expect.stringMatching(/^removed result\.tools\[0\]: .*does not see it/))
    expect(found).toContainEqual(expect.stringMatching(/^changed result\.tools\[1\]\.name: .*server in front/))
    expect(found).toContainEqual(expect.stringMatching(/^removed result\.tools\[1\]\.execution: .*no tasks/))
    expect(found).toContainEqual(expect.stringMatching(/dragoman\/origin"\]: The gateway adds the server/))
  })

  test('content that an older revision does not have', () => {
    const options = { client: OLDEST, server: MODERN, method: 'tools/call' }
    const audio = sentences(
      { id: 1, result: { content: [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav' }] } },
      { id: 1, result: { content: [{ type: 'resource', resource: { uri: 'audio:1', blob: 'AA==' } }] } },
      options,
    )
    expect(audio.length).toBeGreaterThan(2)
    for (const line of audio) expect(line).toContain('has no audio')
    const link = sentences(
      { id: 1, result: { content: [{ type: 'resource_link', name: 'a', uri: 'x:1' }] } },
      { id: 1, result: { content: [{ type: 'text', name: 'a', uri: 'x:1', text: 'a' }] } },
      options,
    )
    for (const line of link) expect(line).toContain('has no resource links')
    const structured = sentences(
      { id: 1, result: { structuredContent: [1] } },
      { id: 1, result: { structuredContent: { result: [1] } } },
      options,
    )
    expect(structured).toEqual([expect.stringContaining('structured content is an object')])
  })

  test('errors', () => {
    const error = (code: number, data?: object) => ({ id: 1, error: { code, message: 'no', data } })
    const kind = 'error' as const
    expect(sentences(error(-32002), error(-32602), { ...modernToLegacy, method: 'resources/read', kind })).toEqual([
      expect.stringContaining('Resource not found'),
    ])
    expect(
      sentences(error(-32022), error(-32603, { upstreamCode: -32022 }), {
        ...modernToLegacy,
        method: 'tools/call',
        kind,
      }),
    ).toEqual([expect.stringContaining('data.upstreamCode'), expect.stringContaining('data.upstreamCode')])
    const linked = sentences(
      error(-32042),
      { id: 1, result: { isError: true, content: [{ type: 'text', text: 'Open this' }] } },
      { client: OLDEST, server: NEWEST_LEGACY, method: 'tools/call', kind },
    )
    for (const line of linked) expect(line).toContain('cannot open links')
  })

  test('forms for older clients', () => {
    const form = (field: object) => ({
      id: 1,
      method: 'elicitation/create',
      params: { requestedSchema: { properties: { a: field } } },
    })
    const found = sentences(form({ oneOf: [{ const: 'x', title: 'X' }] }), form({ enum: ['x'], enumNames: ['X'] }), {
      client: OLDEST,
      server: NEWEST_LEGACY,
      method: 'elicitation/create',
      kind: 'question',
    })
    for (const line of found) expect(line).toContain('plain forms')
  })

  test('a change that no rule knows is not explained', () => {
    const found = sentences(
      { id: 1, result: { strange: 1 } },
      { id: 1, result: { strange: 2 } },
      {
        ...modernToLegacy,
        method: 'acme/do',
      },
    )
    expect(found).toEqual([`changed result.strange: ${UNEXPLAINED.text}`])
  })

  test('equal messages have no explanations', () => {
    const message = { id: 1, method: 'acme/do', params: { n: 1 } }
    expect(
      sentences(message, message, { ...modernToLegacy, method: 'acme/do', flow: 'toServer', kind: 'request' }),
    ).toEqual([])
  })
})

describe('messages of one side', () => {
  test('are explained by what they are', () => {
    const recording = recordingOf({ ...parkedRecording(), method: 'tools/list' }, [
      recordedMessage(0, { side: 'client', direction: 'in', kind: 'request', method: 'tools/list' }, { id: 1 }),
      recordedMessage(1, { side: 'server', direction: 'out', kind: 'request', method: 'initialize' }, { id: 0 }),
      recordedMessage(2, { side: 'client', direction: 'out', kind: 'result' }, { id: 1, result: {} }),
    ])
    const pairs = alignedOf(recording)
    const notes = pairs.map(pair => explainSingle(pair, recording, pairs).text)
    expect(notes[1]).toContain('opens a session')
  })

  test('an answer without a server comes from the gateway', () => {
    const recording = recordingOf({ ...parkedRecording(), method: 'tools/list' }, [
      recordedMessage(0, { side: 'client', direction: 'in', kind: 'request', method: 'tools/list' }, { id: 1 }),
      recordedMessage(2, { side: 'client', direction: 'out', kind: 'result' }, { id: 1, result: {} }),
    ])
    const pairs = alignedOf(recording)
    expect(pairs.map(pair => explainSingle(pair, recording, pairs).text)).toEqual([
      expect.stringContaining('answers this request itself'),
      expect.stringContaining('from its cache'),
    ])
  })
})
