import { Json } from '../../../wire/json/json.ts'
import type { SseEvent } from '../../../wire/sse.ts'
import type { Call } from '../../define/call.ts'
import { text } from '../../define/content.ts'
import type { ToolOutput } from '../../define/tools.ts'

const SHOWN = 500 // characters of an event in a progress notification
const PROGRESS_EVENT = 'progress'
const ERROR_EVENT = 'error'
const END_MARK = '[DONE]' // ends streams of many model APIs

const jsonOf = (event: SseEvent): Json | undefined => {
  try {
    return Json.parse(event.data)
  } catch {
    return undefined
  }
}

/** An event with a number in `progress` says itself how far the call is. */
const isProgress = ({ event }: SseEvent, json: Json | undefined): boolean =>
  event === PROGRESS_EVENT || json?.get('progress')?.kind === 'number'

/** Sends an event to the caller as progress: with its own numbers, or counted. */
export const reportEvent = (call: Call, event: SseEvent, count: number): void | Promise<void> => {
  const json = jsonOf(event)
  const message = json?.get('message')?.asString() ?? event.data.toString('utf8')
  const progress = json?.get('progress')?.asNumber()
  return call.progress(
    progress ?? count,
    progress === undefined ? undefined : json?.get('total')?.asNumber(),
    cut(message),
  )
}

const cut = (message: string): string => (message.length > SHOWN ? `${message.slice(0, SHOWN)}…` : message)

/** The result of a stream: its events that are no progress, one per line. A single JSON object is structured content, too. */
export const resultOfEvents = (events: readonly SseEvent[], isCut: boolean): ToolOutput => {
  const read = events.map(event => ({ event, json: jsonOf(event), data: event.data.toString('utf8') }))
  const kept = read.filter(({ event, json, data }) => !isProgress(event, json) && data !== END_MARK)
  const failed = read.find(({ event }) => event.event === ERROR_EVENT)
  if (failed) return { content: [text(failed.data)], isError: true }
  const [first] = kept
  const lines = [...kept.map(({ data }) => data), ...(isCut ? ['… (the stream is longer)'] : [])]
  const structured = kept.length === 1 && first?.json?.isObject ? { structuredContent: first.json } : {}
  return { content: [text(lines.length > 0 ? lines.join('\n') : 'The stream ended without a result')], ...structured }
}
