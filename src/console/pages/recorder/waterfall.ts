import type { Recording } from '../../../admin/api/recorder.ts'
import type { ReadMessage } from './align.ts'
import { type JsonNode, nodeAt } from './json-node.ts'

/** For whom an exchange waits. */
export type WaitingFor = 'gateway' | 'server' | 'client'

/** A part of a row: who worked from when to when, in milliseconds since the exchange began. */
export interface WaterfallBar {
  readonly who: WaitingFor
  readonly fromMs: number
  readonly toMs: number
}

/** A line of the waterfall. */
export interface WaterfallRow {
  readonly id: string
  readonly label: string
  readonly detail?: string | undefined // the server
  readonly fromMs: number
  readonly toMs: number
  readonly isOpen: boolean // its end was not recorded
  readonly bars: readonly WaterfallBar[]
  readonly marks: readonly number[] // times of notifications
}

export interface Waterfall {
  readonly rows: readonly WaterfallRow[]
  readonly totalMs: number
  readonly sums: Readonly<Record<WaitingFor, number>>
  readonly ticks: readonly number[]
}

const MOST_TICKS = 6

/** When whom was waited for, and how long each request, question and answer took. */
export const waterfallOf = (recording: Recording, recorded: readonly ReadMessage[]): Waterfall => {
  // The result is written a moment after the exchange has ended: its duration is the one that the list shows, too.
  const totalMs = recording.durationMs ?? recorded.reduce((last, { atMs }) => Math.max(last, atMs), 0)
  const messages = recorded.map(message => (message.atMs > totalMs ? { ...message, atMs: totalMs } : message))
  const bars = phasesOf(messages, totalMs)
  const sums = { gateway: 0, server: 0, client: 0 }
  for (const { who, fromMs, toMs } of bars) sums[who] += toMs - fromMs
  const whole: WaterfallRow = {
    id: 'exchange',
    label: recording.method,
    fromMs: 0,
    toMs: totalMs,
    isOpen: recording.outcome === 'running',
    bars,
    marks: [],
  }
  return {
    rows: [whole, ...spanRows(messages, totalMs, bars), ...notificationRows(messages)],
    totalMs,
    sums,
    ticks: ticksOf(totalMs),
  }
}

/** Follows the messages: an open question waits for the client, an open request for the server, the rest is the gateway's. */
const phasesOf = (messages: readonly ReadMessage[], totalMs: number): readonly WaterfallBar[] => {
  const pending = new Set<string>()
  const asked = { client: 0, server: 0 }
  const bars: WaterfallBar[] = []
  let [who, since]: [WaitingFor, number] = ['gateway', 0]
  const switchTo = (next: WaitingFor, atMs: number): void => {
    if (next === who) return
    if (atMs > since) bars.push({ who, fromMs: since, toMs: atMs })
    ;[who, since] = [next, atMs]
  }
  for (const message of messages) {
    note(message, pending, asked)
    if (asked.client > 0) switchTo('client', message.atMs)
    else switchTo(pending.size > 0 && asked.server <= 0 ? 'server' : 'gateway', message.atMs)
  }
  if (totalMs > since) bars.push({ who, fromMs: since, toMs: totalMs })
  return bars
}

const note = (message: ReadMessage, pending: Set<string>, asked: { client: number; server: number }): void => {
  const { side, role, kind } = message
  const answered = `answered ${message.server}`
  if (kind === 'question') asked[side]++
  else if (kind === 'answer') {
    asked[side] = Math.max(0, asked[side] - 1)
    // The request that it belongs to is part of an earlier exchange: the server goes on with it.
    if (side === 'server' && pending.size === 0) pending.add(answered)
  } else if (side === 'server' && (role === 'request' || role === 'retry')) pending.add(callKey(message))
  else if (side === 'server' && (role === 'response' || role === 'asks')) {
    pending.delete(callKey(message))
    pending.delete(answered)
  }
}

const idOf = (node: JsonNode | undefined): string => {
  const id = nodeAt(node, ['id'])
  return id?.kind === 'scalar' ? id.text : ''
}

const callKey = ({ server, node }: ReadMessage): string => `${server} ${idOf(node)}`

/** One row for each request to a server, and for each question. */
const spanRows = (
  messages: readonly ReadMessage[],
  totalMs: number,
  phases: readonly WaterfallBar[],
): readonly WaterfallRow[] =>
  messages.flatMap((message, at): WaterfallRow[] => {
    const { side, kind, role, atMs, method = '', server, index } = message
    const isCall = side === 'server' && (role === 'request' || role === 'retry')
    const isQuestion = kind === 'question' && (side === 'server' || !messages.some(isQuestionOfServer))
    const isAnswer = side === 'server' && kind === 'answer' && !messages.some(isQuestionOfServer)
    if (!isCall && !isQuestion && !isAnswer) return []
    const rest = messages.slice(at + 1)
    const end = rest.find(later => later.side === side && endsWith(message, later, isAnswer))
    const toMs = end?.atMs ?? totalMs
    const bars = phases.flatMap(bar => clip(bar, atMs, toMs))
    const label = isAnswer ? 'answer' : method
    return [{ id: String(index), label, detail: server, fromMs: atMs, toMs, isOpen: !end, bars, marks: [] }]
  })

const isQuestionOfServer = ({ side, kind }: ReadMessage): boolean => side === 'server' && kind === 'question'

/** Whether a later message of the same side ends what `start` began. */
const endsWith = (start: ReadMessage, later: ReadMessage, isAnswer: boolean): boolean => {
  if (later.server !== start.server) return false
  const isResponse = later.role === 'response' || later.role === 'asks'
  if (isAnswer) return isResponse
  const isEnd = start.kind === 'question' ? later.kind === 'answer' : isResponse
  return isEnd && idOf(start.node) === idOf(later.node)
}

const clip = ({ who, fromMs, toMs }: WaterfallBar, start: number, end: number): WaterfallBar[] => {
  const [from, to] = [Math.max(fromMs, start), Math.min(toMs, end)]
  return to > from ? [{ who, fromMs: from, toMs: to }] : []
}

/** The notifications of servers, those of one method on one row; without servers, those to the client. */
const notificationRows = (messages: readonly ReadMessage[]): readonly WaterfallRow[] => {
  const all = messages.filter(({ kind }) => kind === 'notification')
  const ofServers = all.filter(({ side }) => side === 'server')
  const groups = new Map<string, ReadMessage[]>()
  for (const message of ofServers.length > 0 ? ofServers : all) {
    const key = `${message.server ?? ''} ${message.method}`
    groups.set(key, [...(groups.get(key) ?? []), message])
  }
  return [...groups].map(([key, group]) => {
    const marks = group.map(({ atMs }) => atMs)
    const count = group.length > 1 ? ` × ${group.length}` : ''
    return {
      id: `n ${key}`,
      label: `${group[0]?.method ?? ''}${count}`,
      detail: group[0]?.server,
      fromMs: Math.min(...marks),
      toMs: Math.max(...marks),
      isOpen: false,
      bars: [],
      marks,
    }
  })
}

/** Round times for the scale: 0, and up to six more. */
export const ticksOf = (totalMs: number): readonly number[] => {
  if (totalMs <= 0) return [0]
  const rough = totalMs / MOST_TICKS
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find(factor => factor * power >= rough) ?? 10) * power
  const count = Math.floor(totalMs / step + 1e-9)
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(12)))
}
