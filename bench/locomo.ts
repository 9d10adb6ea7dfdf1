import { readFileSync } from 'node:fs'

/** One thing said, with the id by which questions refer to it. */
export interface Turn {
  readonly id: string
  readonly speaker: string
  readonly text: string
}

export interface Session {
  readonly number: number
  readonly at: number // when, ms since 1970
  readonly turns: readonly Turn[]
}

export interface Asked {
  readonly text: string
  readonly answer: string
  readonly category: number
  readonly evidence: readonly string[] // ids of turns
}

export interface Conversation {
  readonly name: string
  readonly sessions: readonly Session[]
  readonly questions: readonly Asked[]
}

interface RawTurn {
  readonly speaker: string
  readonly dia_id: string
  readonly text: string
  readonly blip_caption?: string
}

interface RawConversation {
  readonly sample_id: string
  readonly conversation: Readonly<Record<string, unknown>>
  readonly qa: readonly {
    readonly question: string
    readonly answer?: unknown
    readonly category: number
    readonly evidence?: readonly string[]
  }[]
}

/** "3:05 pm on 2 June, 2021", taken as UTC. */
const readTime = (words: string): number => {
  const match = /(\d+):(\d+) (am|pm) on (\d+) (\w+),? (\d{4})/.exec(words)
  if (!match) throw new Error(`no session time: ${words}`)
  const [, hour, minute, half, day, month, year] = match
  return Date.parse(`${day} ${month} ${year} ${hour}:${minute} ${half} UTC`)
}

/** A shared picture may be part of what was said, as its caption. */
const readTurn = ({ speaker, dia_id: id, text, blip_caption: caption }: RawTurn, withCaptions: boolean): Turn => {
  const words = text.replaceAll(/\s+/g, ' ').trim()
  return { id, speaker, text: caption && withCaptions ? `${words} [shares ${caption}]` : words }
}

const readSessions = (raw: RawConversation['conversation'], withCaptions: boolean): Session[] =>
  Object.keys(raw).flatMap(key => {
    const number = Number(/^session_(\d+)$/.exec(key)?.[1] ?? Number.NaN)
    if (Number.isNaN(number)) return []
    const turns = (raw[key] as readonly RawTurn[])
      .map(turn => readTurn(turn, withCaptions))
      .filter(({ text }) => text !== '')
    return turns.length === 0 ? [] : [{ number, at: readTime(String(raw[`${key}_date_time`])), turns }]
  })

const readConversation = (
  { sample_id: name, conversation, qa }: RawConversation,
  withCaptions: boolean,
): Conversation => {
  const sessions = readSessions(conversation, withCaptions).sort((a, b) => a.number - b.number)
  const known = new Set(sessions.flatMap(({ turns }) => turns.map(({ id }) => id)))
  const questions = qa.map(({ question, answer, category, evidence = [] }) => ({
    text: question,
    answer: String(answer ?? ''),
    category,
    evidence: [...new Set(evidence.flatMap(words => words.match(/D\d+:\d+/g) ?? []))].filter(id => known.has(id)),
  }))
  return { name, sessions, questions: questions.filter(({ evidence }) => evidence.length > 0) }
}

/** The conversations of a LoCoMo file with those questions whose evidence is in them. */
export const readLocomo = (file: string, withCaptions = true): Conversation[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as readonly RawConversation[]).map(raw => readConversation(raw, withCaptions))
