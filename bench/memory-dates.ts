import type { Asked, Conversation } from './locomo.ts'
import type { Memory } from './memory-program.ts'

/** How well times are read from what was said. */
export interface DateFigures {
  readonly questions: number
  readonly sameDay: number
  readonly sameMonth: number
  readonly asStated: number // the answer and what was read share a day, each as wide as it is stated
}

const DAY = 86_400_000
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const BEFORE =
  /\b(weekend|week|day|month|sunday|monday|tuesday|wednesday|thursday|friday|saturday)s? (?:before|prior to)\b/i

interface Span {
  readonly start: number
  readonly end: number
}

/** "The Sunday before 14 March 2021", which no parser of dates knows. */
const spanBefore = (unit: string, date: Span): Span => {
  const { start } = date
  if (unit === 'week') return { start: start - 7 * DAY, end: start - 1 }
  if (unit === 'month') return { start: start - 31 * DAY, end: start - 1 }
  if (unit === 'day') return { start: start - DAY, end: start - 1 }
  const wanted = WEEKDAYS.indexOf(unit === 'weekend' ? 'saturday' : unit)
  const back = (new Date(start).getUTCDay() - wanted + 6) % 7
  const first = start - (back + 1) * DAY
  return { start: first, end: first + (unit === 'weekend' ? 2 : 1) * DAY - 1 }
}

/** The time an answer states, if it states one with its year. */
const spanOfAnswer = (answer: string, memory: Memory): Span | undefined => {
  const year = /^\W*(?:in )?((?:19|20)\d\d)\W*$/.exec(answer)?.[1]
  if (year) return { start: Date.UTC(Number(year), 0, 1), end: Date.UTC(Number(year) + 1, 0, 1) - 1 }
  if (!/\b(?:19|20)\d\d\b/.test(answer)) return undefined
  const date = memory.datesIn(answer, new Date(0)).find(({ text }) => /\b(?:19|20)\d\d\b/.test(text))
  const unit = BEFORE.exec(answer)?.[1]?.toLowerCase()
  return date && (unit && !BEFORE.test(date.text) ? spanBefore(unit, date) : date)
}

const month = (at: number): number => new Date(at).getUTCFullYear() * 12 + new Date(at).getUTCMonth()

const isRight = {
  sameDay: (read: Span, answer: Span) => Math.abs(read.start - answer.start) < DAY,
  sameMonth: (read: Span, answer: Span) =>
    month(read.start) <= month(answer.end) && month(answer.start) <= month(read.end),
  asStated: (read: Span, answer: Span) => read.start <= answer.end && answer.start <= read.end,
}

const TELLS_TIME =
  /\b(?:yesterday|today|tonight|tomorrow|ago|(?:last|next|this|past) \w+|(?:19|20)\d\d|january|february|march|april|june|july|august|september|october|november|december)\b/i

/** What is read from those of the evidence that speak of a time. */
const readSpans = (conversation: Conversation, question: Asked, memory: Memory): (readonly Span[])[] =>
  conversation.sessions.flatMap(({ at, turns }) =>
    turns
      .filter(({ id, text }) => question.evidence.includes(id) && TELLS_TIME.test(text))
      .map(({ text }): readonly Span[] => memory.datesIn(text, new Date(at))),
  )

/** Reads the times in the evidence of temporal questions and compares them with the answers. */
export const measureDates = (conversations: readonly Conversation[], memory: Memory): DateFigures => {
  const right = { sameDay: 0, sameMonth: 0, asStated: 0 }
  let questions = 0
  for (const conversation of conversations) {
    for (const question of conversation.questions) {
      const answer = question.category === 2 ? spanOfAnswer(question.answer, memory) : undefined
      const evidence = answer ? readSpans(conversation, question, memory) : []
      if (!answer || evidence.length === 0) continue
      questions++
      const spans = evidence.flat()
      for (const key of Object.keys(right) as (keyof typeof right)[])
        if (spans.some(span => isRight[key](span, answer))) right[key]++
    }
  }
  const share = (count: number) => (100 * count) / questions
  return {
    questions,
    sameDay: share(right.sameDay),
    sameMonth: share(right.sameMonth),
    asStated: share(right.asStated),
  }
}
