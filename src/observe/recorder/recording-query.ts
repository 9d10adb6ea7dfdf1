import type { RecordingSummary } from '../../protocol/recording.ts'
import type { StoredExchange } from './block-format.ts'
import { type RecordingView, readMessageText, summarize } from './describe-recording.ts'
import { serverNameOf } from './recorded-exchange.ts'

/** Which recordings are wanted. Texts are compared without regard to case. */
export interface RecordingFilter {
  readonly before?: number | undefined // the order of the exchange that the page begins before
  readonly search?: string | undefined // in names, and in the text of messages
  readonly method?: string | undefined
  readonly server?: string | undefined
  readonly workspace?: string | undefined
  readonly outcome?: string | undefined
  readonly principal?: string | undefined
  readonly client?: string | undefined // a part of it
  readonly subject?: string | undefined // a part of it
}

/** One page of recordings, newest first. */
export interface RecordingPage {
  readonly recordings: readonly RecordingSummary[]
  readonly next?: number | undefined // `before` of the next page
  readonly isPartial: boolean // the search has taken long and stopped
}

const SLICE_MS = 10 // then other work goes first
const LONGEST_MS = 400 // of one search

/** Finds the newest recordings that match. A long search lets other work go first, and stops after a while. */
export const queryRecordings = async (
  view: RecordingView,
  filter: RecordingFilter,
  limit: number,
  searchesTexts: boolean,
): Promise<RecordingPage> => {
  const { before = Number.POSITIVE_INFINITY } = filter
  const matches = createMatcher(view, filter, searchesTexts)
  const recordings: RecordingSummary[] = []
  const begun = performance.now()
  let sliceBegun = begun
  view.recorder.flushAll()
  for (const order of view.recorder.ordersBefore(before)) {
    if (recordings.length >= limit) return { recordings, next: order + 1, isPartial: false }
    const found = view.recorder.find(order)
    const summary = found && matches(found)
    if (summary) recordings.push(summary)
    const now = performance.now()
    if (now - sliceBegun < SLICE_MS) continue
    if (now - begun >= LONGEST_MS) return { recordings, next: order, isPartial: true }
    await new Promise(setImmediate)
    sliceBegun = performance.now()
  }
  return { recordings, isPartial: false }
}

/** Makes the function that returns the row of a recording that matches. */
const createMatcher = (view: RecordingView, filter: RecordingFilter, searchesTexts: boolean) => {
  const { method, server, workspace, outcome, principal } = filter
  const [search, client, subject] = [filter.search, filter.client, filter.subject].map(text =>
    text?.trim().toLowerCase(),
  )
  const isRefused = (recording: StoredExchange): boolean =>
    (method !== undefined && recording.method !== method) ||
    (workspace !== undefined && recording.workspace !== workspace) ||
    (outcome !== undefined && recording.outcome !== outcome) ||
    (principal !== undefined && recording.principal !== principal) ||
    (client !== undefined && !has(recording.client, client)) ||
    (server !== undefined && !recording.servers.some(each => serverNameOf(each) === server))

  return (recording: StoredExchange): RecordingSummary | undefined => {
    if (isRefused(recording)) return undefined
    const summary = summarize(recording, view)
    if (subject && !has(summary.subject, subject)) return undefined
    if (!search || isNamed(summary, search, searchesTexts)) return summary
    return searchesTexts && isInTexts(recording, search, view) ? summary : undefined
  }
}

const has = (text: string | undefined, part: string): boolean => text?.toLowerCase().includes(part) === true

const isNamed = (summary: RecordingSummary, search: string, hasErrors: boolean): boolean => {
  const { method, subject, client, principal, workspace, id, servers, error } = summary
  const texts = [method, subject, client, principal, workspace, id, ...servers.map(({ name }) => name)]
  return texts.some(text => has(text, search)) || (hasErrors && has(error, search))
}

/** The text as it came is looked at first; only what is found there is read without secrets, so a secret is never found. */
const isInTexts = ({ order }: StoredExchange, search: string, { recorder, redactor }: RecordingView): boolean =>
  recorder
    .messagesOf(order)
    .some(message => has(message.text, search) && has(readMessageText(message, redactor), search))
