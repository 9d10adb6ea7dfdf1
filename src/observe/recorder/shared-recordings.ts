import type { Recording, RecordingSummary } from '../../protocol/recording.ts'
import type { FlightRecorder } from './flight-recorder.ts'
import type { RecorderAccess } from './recorder-access.ts'
import type { RecordingFilter, RecordingPage } from './recording-query.ts'

// The recordings of a gateway of several processes: each keeps its own, and the main process shows all of them. Their orders
// must compare, so each process gives them out by time.

const PER_MS = 4096 // an order stays a safe integer until the year 2039
const MOST_PROCESSES = 64
const TURNS = PER_MS / MOST_PROCESSES // exchanges of one process in a millisecond that have orders of their own

type RecorderFigures = ReturnType<RecorderAccess['state']>

/** What one process is asked about its recordings. */
export type RecorderQuestion =
  | {
      readonly kind: 'query'
      readonly filter: RecordingFilter
      readonly limit: number
      readonly searchesTexts: boolean
    }
  | { readonly kind: 'find' | 'order'; readonly id: string }
  | { readonly kind: 'switch'; readonly isOn: boolean }
  | { readonly kind: 'state' | 'clear' }

/** Answers such questions in one process. */
export type AnswerRecorderQuestion = (question: RecorderQuestion) => unknown

/** The recordings of one process, with orders that compare with those of the others. */
export const shareRecordings = (flight: FlightRecorder, access: RecorderAccess, number: number) => {
  const orderOf = (at: number, order: number): number =>
    Math.floor(at) * PER_MS + (order % TURNS) * MOST_PROCESSES + (number % MOST_PROCESSES)
  const orderOfId = (id: string): number | undefined => {
    const order = access.orderOf(id)
    const found = order === undefined ? undefined : flight.find(order)
    return found && orderOf(found.at, found.order)
  }
  const withOrder = <Row extends RecordingSummary>(row: Row): Row => ({
    ...row,
    order: orderOfId(row.id) ?? orderOf(row.at, row.order),
  })

  /** The first kept exchange that is older than `before`, by its order here. */
  const findOlder = (before: number, from = Number.POSITIVE_INFINITY): number | undefined => {
    for (const order of flight.ordersBefore(from)) {
      const found = flight.find(order)
      if (found && orderOf(found.at, order) < before) return order
    }
    return undefined
  }

  const query = async (filter: RecordingFilter, limit: number, searchesTexts: boolean): Promise<RecordingPage> => {
    flight.flushAll()
    const first = filter.before === undefined ? Number.POSITIVE_INFINITY : findOlder(filter.before)
    if (first === undefined) return { recordings: [], isPartial: false }
    const page = await access.query({ ...filter, before: first + 1 }, limit, searchesTexts)
    const rest = page.next === undefined ? undefined : findOlder(Number.POSITIVE_INFINITY, page.next)
    const oldest = rest === undefined ? undefined : flight.find(rest)
    return {
      recordings: page.recordings.map(withOrder),
      isPartial: page.isPartial,
      ...(oldest && rest !== undefined && { next: orderOf(oldest.at, rest) + 1 }),
    }
  }

  const answer: AnswerRecorderQuestion = question => {
    switch (question.kind) {
      case 'query':
        return query(question.filter, question.limit, question.searchesTexts)
      case 'find': {
        const found = access.find(question.id)
        return found && withOrder(found)
      }
      case 'order':
        flight.flushAll()
        return orderOfId(question.id)
      case 'switch':
        access.switchTo(question.isOn)
        return access.state()
      case 'clear':
        access.clear()
        return access.state()
      case 'state':
        return access.state()
    }
  }
  return { answer, withOrder }
}

/** Asks all processes; those that do not answer are left out. */
export type AskRecorders = (question: RecorderQuestion) => Promise<readonly unknown[]>

/** The recordings of all processes as one. */
export const joinRecordings = (ask: AskRecorders) => {
  const sum = (all: readonly RecorderFigures[]): RecorderFigures => ({
    isOn: all.some(({ isOn }) => isOn),
    kept: total(all, 'kept'),
    keptBytes: total(all, 'keptBytes'),
    maxBytes: total(all, 'maxBytes'),
    forgotten: total(all, 'forgotten'),
    skipped: total(all, 'skipped'),
  })
  return {
    state: async () => sum((await ask({ kind: 'state' })) as readonly RecorderFigures[]),
    query: async (filter: RecordingFilter, limit: number, searchesTexts: boolean): Promise<RecordingPage> => {
      const pages = (await ask({ kind: 'query', filter, limit, searchesTexts })) as readonly RecordingPage[]
      return joinPages(pages, limit)
    },
    find: async (id: string): Promise<Recording | undefined> =>
      (await ask({ kind: 'find', id })).find(found => found !== undefined) as Recording | undefined,
    orderOf: async (id: string): Promise<number | undefined> =>
      (await ask({ kind: 'order', id })).find(found => found !== undefined) as number | undefined,
    switchTo: async (isOn: boolean): Promise<void> => void (await ask({ kind: 'switch', isOn })),
    clear: async (): Promise<void> => void (await ask({ kind: 'clear' })),
  }
}

/** Newest first. What is older than the place where a process has stopped looking waits for the next page. */
export const joinPages = (pages: readonly RecordingPage[], limit: number): RecordingPage => {
  const all = pages.flatMap(({ recordings }) => recordings).sort((a, b) => b.order - a.order)
  const stopped = Math.max(...pages.map(({ next = Number.NEGATIVE_INFINITY }) => next), Number.NEGATIVE_INFINITY)
  const sure = all.filter(({ order }) => order >= stopped)
  const recordings = sure.slice(0, limit)
  const last = recordings.at(-1)?.order
  const rest = sure.length > limit ? last : stopped
  return {
    recordings,
    isPartial: pages.some(({ isPartial }) => isPartial),
    ...(rest !== undefined && Number.isFinite(rest) && { next: rest }),
  }
}

const total = (all: readonly RecorderFigures[], key: Exclude<keyof RecorderFigures, 'isOn'>): number =>
  all.reduce((value, figures) => value + figures[key], 0)
