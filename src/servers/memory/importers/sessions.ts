import { type Item, type Origin, uuidFor } from './item.ts'
import type { Message } from './message.ts'

const MOST_MESSAGES = 200
const MOST_CHARACTERS = 128 * 1024
const LONGEST_MESSAGE = 64 * 1024

/** Where a message stands, for people. */
export interface Said extends Message {
  readonly where: string
}

interface Session {
  readonly where: string
  readonly at: number | undefined
  readonly lines: string[]
  size: number
}

/** Gathers what is said, and gives episodes as they become whole. */
export interface Sessions {
  add(said: Said): readonly Item[]
  end(): readonly Item[]
}

/**
 * A conversation as episodes, one for each day and none too long. They share a chain, so that the end of one is the
 * context of the next; the same conversation read again, longer, replaces what it was.
 */
export const createSessions = (origin: Origin): Sessions => {
  const uuidOf = (number: number): string => uuidFor('chat', origin.group, origin.key, number)
  let number = 0
  let session: Session | undefined
  const flush = (): Item[] => {
    const done = session
    session = undefined
    return done ? [episodeOf(done, number++, origin, uuidOf)] : []
  }
  const addLine = (line: string, said: Said): Item[] => {
    const whole = session && !fits(session, said, line) ? flush() : []
    session ??= { where: said.where, at: said.at, lines: [], size: 0 }
    session.lines.push(line)
    session.size += line.length
    return whole
  }
  return {
    add: said => linesOf(said).flatMap(line => addLine(line, said)),
    end: () => [...flush(), ...(number > 0 ? [{ kind: 'end', uuidOf, from: number } as const] : [])],
  }
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

const fits = ({ at, lines, size }: Session, message: Message, line: string): boolean =>
  lines.length < MOST_MESSAGES &&
  size + line.length <= MOST_CHARACTERS &&
  (at === undefined || message.at === undefined || dayOf(at) === dayOf(message.at))

const episodeOf = (
  { where, at, lines }: Session,
  number: number,
  origin: Origin,
  uuidOf: (number: number) => string,
): Item => {
  const title = number === 0 ? origin.name : `${origin.name} (${number + 1})`
  return {
    kind: 'episode',
    where,
    isUndated: at === undefined,
    told: {
      uuid: uuidOf(number),
      group: origin.group,
      name: at === undefined ? title : `${title}, ${dayOf(at)}`,
      body: lines.join('\n'),
      source: 'message',
      sourceDescription: 'chat transcript',
      validAt: at ?? origin.modified,
      chain: `chat:${uuidFor(origin.key)}`,
    },
  }
}

// What looks like the beginning of a turn within one would be read as somebody else speaking.
const LOOKS_LIKE_SPEAKER = /\n(?=\s*(?:\[[^\]\n]{1,40}\]\s*)?[^\s:][^:\n]{0,120}:(?:\s|$))/g

const linesOf = ({ actor, text }: Message): string[] => {
  const name = speakerOf(actor)
  const whole = text.replaceAll('\r\n', '\n').replace(LOOKS_LIKE_SPEAKER, ' ')
  const parts: string[] = []
  for (let at = 0; at < whole.length; at += LONGEST_MESSAGE)
    parts.push(`${name}: ${whole.slice(at, at + LONGEST_MESSAGE)}`)
  return parts
}

/** A name as it can stand before a colon: up to four words. */
const speakerOf = (actor: string): string =>
  actor
    .replace(/[^\p{L}\p{N}_@.'’-]+/gu, ' ')
    .trim()
    .split(' ')
    .slice(0, 4)
    .join(' ') || 'somebody'
