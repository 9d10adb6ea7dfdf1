import type { Disposable, Page, Route } from 'playwright-core'
import type { Recording, RecordingList, RecordingSummary } from '../../src/admin/api/recorder.ts'
import { parkedRecording, recordingOf, retryRecording } from '../../src/console/pages/recorder/recording.fixture.ts'

/** `count` summaries, newest first, of several methods, servers and outcomes. */
export const manySummaries = (count: number, from = 0): RecordingSummary[] => {
  const { all: _all, dropped: _dropped, ...first } = parkedRecording()
  const METHODS = ['tools/call', 'tools/list', 'resources/read', 'prompts/get'] as const
  const OUTCOMES = ['ok', 'ok', 'ok', 'tool_error', 'error', 'cancelled'] as const
  return Array.from({ length: count }, (_, at): RecordingSummary => {
    const order = from + count - at
    return {
      ...first,
      id: `r${order}`,
      order,
      at: first.at + order * 37,
      method: METHODS[order % METHODS.length] ?? 'tools/call',
      subject: `tool_${order}`,
      outcome: OUTCOMES[order % OUTCOMES.length] ?? 'ok',
      durationMs: ((order * 7919) % 4000) / 10,
      isTranslated: order % 3 === 0,
    }
  })
}

/** What a faked gateway keeps; tests may change it. */
export interface FakeRecorder {
  isOn: boolean
  summaries: readonly RecordingSummary[]
  recordings: readonly Recording[]
  skipped: number
  readonly requests: string[] // the queries of lists
}

export const createFakeRecorder = (summaries: readonly RecordingSummary[] = []): FakeRecorder => ({
  isOn: true,
  summaries,
  recordings: [parkedRecording(), retryRecording()],
  skipped: 0,
  requests: [],
})

const json = (route: Route, body: unknown, status = 200) =>
  route.fulfill({ status, contentType: 'application/json', body: JSON.stringify(body) })

/**
 * Answers the requests of the page for recordings, and replaces its events: `emitRecordings` sends them. For numbers and
 * contents that a real gateway would need minutes to make.
 */
export const fakeRecordings = async (page: Page, recorder: FakeRecorder): Promise<Disposable> => {
  const events = await page.addInitScript(`
    globalThis.EventSource = class extends EventTarget {
      static CLOSED = 2
      readyState = 1
      constructor() { super(); (globalThis.sources ??= new Set()).add(this); setTimeout(() => this.onopen?.()) }
      close() { globalThis.sources.delete(this) }
    }
    globalThis.emit = (kind, data) => {
      for (const source of globalThis.sources ?? []) source.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) }))
    }`)
  await page.route(/\/admin\/recordings/, async route => {
    const url = new URL(route.request().url())
    const id = url.pathname.split('/recordings/')[1]
    if (route.request().method() === 'PATCH') {
      recorder.isOn = (route.request().postDataJSON() as { isOn: boolean }).isOn
      return json(route, stateOf(recorder))
    }
    if (route.request().method() === 'DELETE') {
      recorder.summaries = []
      return json(route, stateOf(recorder))
    }
    if (id === undefined) return json(route, pageOf(recorder, url.searchParams))
    const found = recorder.recordings.find(each => each.id === decodeURIComponent(id))
    return found ? json(route, found) : json(route, { error: { message: `There is no recording "${id}"` } }, 404)
  })
  return events
}

const stateOf = ({ isOn, summaries, skipped }: FakeRecorder) => ({
  isOn,
  kept: summaries.length,
  keptBytes: summaries.length * 4000,
  maxBytes: 64 * 1024 * 1024,
  forgotten: 0,
  skipped,
})

const pageOf = (recorder: FakeRecorder, query: URLSearchParams): RecordingList => {
  recorder.requests.push(query.toString())
  const limit = Number(query.get('limit') ?? 100)
  const before = Number(query.get('before') ?? Number.POSITIVE_INFINITY)
  const isMatch = (row: RecordingSummary): boolean =>
    row.order < before &&
    (!query.get('method') || row.method === query.get('method')) &&
    (!query.get('outcome') || row.outcome === query.get('outcome')) &&
    (!query.get('search') || JSON.stringify(row).includes(query.get('search') ?? ''))
  const found = recorder.summaries.filter(isMatch)
  const recordings = found.slice(0, limit)
  const next = found.length > limit ? String(recordings.at(-1)?.order) : undefined
  return { ...stateOf(recorder), recordings, next, isPartial: false }
}

/** Sends recordings to the page as an event of the gateway does. */
export const emitRecordings = (page: Page, summaries: readonly RecordingSummary[]): Promise<unknown> =>
  page.evaluate(`emit('recording', ${JSON.stringify(summaries)})`)

/** A recording with these texts wherever a client or a server may write one. */
export const recordingWith = (id: string, text: string): Recording => {
  const base = parkedRecording(id)
  const replaced = base.all.map(message => ({
    ...message,
    text: message.text
      .replaceAll('Ship it', JSON.stringify(text).slice(1, -1))
      .replaceAll('What is', JSON.stringify(text).slice(1, -1)),
    headers: message.headers?.map(([name, value]) => [name, `${value}${text.replaceAll('\n', ' ')}`] as const),
  }))
  return recordingOf(
    {
      ...base,
      client: text,
      subject: text,
      error: text,
      principal: text,
      workspace: text,
      servers: [{ name: text, dialect: text, revision: text }],
    },
    replaced,
  )
}
