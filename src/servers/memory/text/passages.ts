import { leavesOf } from './json-leaves.ts'
import { turnsOf } from './turns.ts'

/** A piece of an episode that is found on its own. */
export interface Passage {
  readonly kind: 'turn' | 'passage' | 'leaf'
  readonly text: string
  readonly actor?: string
}

export interface PassageSource {
  readonly content: string
  readonly source: string // text, message or json; whatever else counts as text
}

const MOST_CHARACTERS = 1_200 // of one passage
const MOST_PASSAGES = 10_000 // of one episode: beyond, neighbours share one
const FEWEST_CHARACTERS = 80 // a heading or one short line goes with what follows it

const cutLong = (text: string): string[] => {
  const pieces: string[] = []
  let rest = text
  while (rest.length > MOST_CHARACTERS) {
    const window = rest.slice(0, MOST_CHARACTERS)
    const stop = Math.max(window.lastIndexOf('\n'), window.lastIndexOf('. ') + 1, window.lastIndexOf('。') + 1)
    const space = window.lastIndexOf(' ')
    const at = stop > MOST_CHARACTERS / 2 ? stop : space > MOST_CHARACTERS / 2 ? space : MOST_CHARACTERS
    pieces.push(rest.slice(0, at).trim())
    rest = rest.slice(at).trimStart()
  }
  return [...pieces, rest].filter(piece => piece !== '')
}

/** Paragraphs, the short ones joined to what follows as long as both fit into one passage. */
const paragraphsOf = (content: string): Passage[] => {
  const paragraphs: string[] = []
  let waiting = ''
  for (const block of content.split(/\n\s*\n/u)) {
    const text = block.trim()
    if (text === '') continue
    const joined = waiting === '' ? text : `${waiting}\n${text}`
    waiting = ''
    if (joined.length < FEWEST_CHARACTERS) waiting = joined
    else paragraphs.push(...cutLong(joined))
  }
  if (waiting !== '') paragraphs.push(waiting)
  return paragraphs.map(text => ({ kind: 'passage', text }))
}

const cutTurn = (turn: Passage): Passage[] => cutLong(turn.text).map(text => ({ ...turn, text }))

/** Joins neighbours until there are few enough; their words stay, only who spoke is told in the text. */
const gather = (passages: readonly Passage[]): Passage[] => {
  const size = Math.ceil(passages.length / MOST_PASSAGES)
  if (size <= 1) return [...passages]
  const gathered: Passage[] = []
  for (let at = 0; at < passages.length; at += size) {
    const lines = passages.slice(at, at + size).map(({ actor, text }) => (actor ? `${actor}: ${text}` : text))
    gathered.push({ kind: 'passage', text: lines.join('\n') })
  }
  return gathered
}

const SPLIT: Readonly<Record<string, (content: string) => Passage[]>> = {
  message: content => turnsOf(content)?.flatMap(cutTurn) ?? paragraphsOf(content),
  json: content =>
    leavesOf(content)?.flatMap(text => cutLong(text).map(text => ({ kind: 'leaf', text }))) ?? paragraphsOf(content),
}

/** The passages of an episode: its turns, paragraphs or JSON leaves. */
export const passagesOf = ({ content, source }: PassageSource): Passage[] => {
  const split = Object.hasOwn(SPLIT, source) ? SPLIT[source] : undefined
  return gather((split ?? paragraphsOf)(content))
}
