/** A part of an episode that search finds on its own. */
export interface Passage {
  readonly kind: 'turn' | 'passage' | 'leaf'
  readonly text: string
  readonly actor?: string
}

export interface PassageSource {
  readonly content: string
  readonly source: string // text, message or json; any other value is read as text
}

const MOST_CHARACTERS = 1_200 // of one passage
const MOST_PASSAGES = 10_000 // of one episode; beyond that, neighbours are joined
const FEWEST_CHARACTERS = 80 // a heading or a short line is joined to the next paragraph

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

const paragraphsOf = (content: string): Passage[] => {
  const paragraphs: string[] = []
  let short = ''
  for (const block of content.split(/\n\s*\n/u)) {
    const text = block.trim()
    if (text === '') continue
    const joined = short === '' ? text : `${short}\n${text}`
    short = ''
    if (joined.length < FEWEST_CHARACTERS) short = joined
    else paragraphs.push(...cutLong(joined))
  }
  if (short !== '') paragraphs.push(short)
  return paragraphs.map(text => ({ kind: 'passage', text }))
}

/** Joins neighbours until there are at most MOST_PASSAGES; the speaker of a turn becomes part of the text. */
const joinNeighbours = (passages: readonly Passage[]): Passage[] => {
  const size = Math.ceil(passages.length / MOST_PASSAGES)
  if (size <= 1) return [...passages]
  const joined: Passage[] = []
  for (let at = 0; at < passages.length; at += size) {
    const lines = passages.slice(at, at + size).map(({ actor, text }) => (actor ? `${actor}: ${text}` : text))
    joined.push({ kind: 'passage', text: lines.join('\n') })
  }
  return joined
}

// A name of up to four words, perhaps with a role or a time in brackets: `Ann (support): …`, `[10:02] bob: …`.
const SPEAKER =
  /^\s*(?:\[[^\]\n]{1,40}\]\s*)?([\p{L}\p{N}_@.'’-]{1,60}(?:[ \t][\p{L}\p{N}_@.'’-]{1,60}){0,3})(?:[ \t]*\([^)\n]{1,40}\))?:(?:[ \t]+|$)/u

/** The turns of `actor: text` lines; a line without a speaker continues the turn before. Undefined for other texts. */
const turnsOf = (content: string): Passage[] | undefined => {
  const turns: { actor: string; lines: string[] }[] = []
  for (const line of content.split('\n')) {
    const [opening = '', actor] = SPEAKER.exec(line) ?? []
    if (actor !== undefined) turns.push({ actor, lines: [line.slice(opening.length)] })
    else if (turns.length > 0) turns[turns.length - 1]?.lines.push(line)
    else if (line.trim() !== '') return undefined
  }
  if (turns.length === 0) return undefined
  return turns.flatMap(({ actor, lines }) => {
    const text = lines.join('\n').trim()
    return text === '' ? [] : [{ kind: 'turn', actor, text }]
  })
}

const MOST_LEAVES = 10_000
const MOST_DEPTH = 64

/** `userName` and `user_name` become "user Name" and "user name". */
const wordsOfKey = (key: string): string => key.replace(/[_-]+/g, ' ').replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ')

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

/** The name of an object, repeated in the path of each of its leaves. */
const titleOf = (value: object): string | undefined => {
  const named = ['name', 'title', 'id', 'key'].map(key => (value as Readonly<Record<string, unknown>>)[key])
  const title = named.find(found => typeof found === 'string' && found !== '' && found.length <= 80)
  return typeof title === 'string' ? title : undefined
}

/** Adds a line for each scalar and one for the scalars of each array. */
const addLeaves = (value: unknown, path: readonly string[], lines: string[]): void => {
  if (lines.length >= MOST_LEAVES || value === null || value === undefined) return
  if (isScalar(value)) {
    lines.push([path.join(' '), String(value)].filter(part => part !== '').join(': '))
    return
  }
  if (path.length > MOST_DEPTH) {
    lines.push(`${path.slice(0, 8).join(' ')}: ${JSON.stringify(value)}`)
    return
  }
  if (Array.isArray(value)) {
    const scalars = value.filter(isScalar)
    if (scalars.length > 0) lines.push([path.join(' '), scalars.join(', ')].filter(part => part !== '').join(': '))
    for (const item of value) if (!isScalar(item)) addLeaves(item, path, lines)
    return
  }
  const title = titleOf(value as object)
  const here = title === undefined || path.includes(title) ? path : [...path, title]
  for (const [key, item] of Object.entries(value as object)) addLeaves(item, [...here, wordsOfKey(key)], lines)
}

/** Every leaf of a JSON text as a line `path: value`; undefined if it is not JSON. */
const leavesOf = (content: string): string[] | undefined => {
  try {
    const lines: string[] = []
    addLeaves(JSON.parse(content), [], lines)
    return lines
  } catch {
    return undefined
  }
}

const SPLIT: Readonly<Record<string, (content: string) => Passage[]>> = {
  message: content =>
    turnsOf(content)?.flatMap(turn => cutLong(turn.text).map(text => ({ ...turn, text }))) ?? paragraphsOf(content),
  json: content =>
    leavesOf(content)?.flatMap(text => cutLong(text).map(text => ({ kind: 'leaf', text }))) ?? paragraphsOf(content),
}

/** The passages of an episode: its turns, paragraphs or JSON leaves. */
export const passagesOf = ({ content, source }: PassageSource): Passage[] => {
  const split = Object.hasOwn(SPLIT, source) ? SPLIT[source] : undefined
  return joinNeighbours((split ?? paragraphsOf)(content))
}
