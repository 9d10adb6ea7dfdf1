import { uuidFor } from '../ids.ts'
import { type ChatMessage, type PlacedMessage, UNKNOWN_SPEAKER } from './messages.ts'
import type { ImportItem, ImportOrigin } from './store-items.ts'

const MOST_MESSAGES = 200
const MOST_CHARACTERS = 128 * 1024
const LONGEST_MESSAGE = 64 * 1024

interface OpenEpisode {
  readonly where: string
  readonly at: number | undefined
  readonly lines: string[]
  size: number
}

/** Collects messages and returns episodes as they become complete. */
export interface ChatEpisodes {
  add(message: PlacedMessage): readonly ImportItem[]
  end(): readonly ImportItem[]
}

/**
 * Turns a conversation into episodes, one per day and none too long. They share a chain, so that the end of one is the
 * context of the next. The same conversation imported again, longer, replaces the earlier version.
 */
export const createChatEpisodes = (origin: ImportOrigin): ChatEpisodes => {
  const uuidOf = (number: number): string => uuidFor('chat', origin.group, origin.key, number)
  let number = 0
  let open: OpenEpisode | undefined
  const flush = (): ImportItem[] => {
    const done = open
    open = undefined
    return done ? [episodeOf(done, number++, origin, uuidOf)] : []
  }
  const addLine = (line: string, message: PlacedMessage): ImportItem[] => {
    const complete = open && !fits(open, message, line) ? flush() : []
    open ??= { where: message.where, at: message.at, lines: [], size: 0 }
    open.lines.push(line)
    open.size += line.length
    return complete
  }
  return {
    add: message => linesOf(message).flatMap(line => addLine(line, message)),
    end: () => [...flush(), ...(number > 0 ? [{ kind: 'end', uuidOf, from: number } as const] : [])],
  }
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

const fits = ({ at, lines, size }: OpenEpisode, message: ChatMessage, line: string): boolean =>
  lines.length < MOST_MESSAGES &&
  size + line.length <= MOST_CHARACTERS &&
  (at === undefined || message.at === undefined || dayOf(at) === dayOf(message.at))

const episodeOf = (
  { where, at, lines }: OpenEpisode,
  number: number,
  origin: ImportOrigin,
  uuidOf: (number: number) => string,
): ImportItem => {
  const title = number === 0 ? origin.name : `${origin.name} (${number + 1})`
  return {
    kind: 'episode',
    where,
    isUndated: at === undefined,
    input: {
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

// A line within a message that looks like `actor: text` would be read as a message of another speaker.
const LOOKS_LIKE_SPEAKER = /\n(?=\s*(?:\[[^\]\n]{1,40}\]\s*)?[^\s:][^:\n]{0,120}:(?:\s|$))/g

const linesOf = ({ actor, text }: ChatMessage): string[] => {
  const name = speakerOf(actor)
  const whole = text.replaceAll('\r\n', '\n').replace(LOOKS_LIKE_SPEAKER, ' ')
  const parts: string[] = []
  for (let at = 0; at < whole.length; at += LONGEST_MESSAGE)
    parts.push(`${name}: ${whole.slice(at, at + LONGEST_MESSAGE)}`)
  return parts
}

/** A name that is recognised before a colon: up to four words. */
const speakerOf = (actor: string): string =>
  actor
    .replace(/[^\p{L}\p{N}_@.'’-]+/gu, ' ')
    .trim()
    .split(' ')
    .slice(0, 4)
    .join(' ') || UNKNOWN_SPEAKER
