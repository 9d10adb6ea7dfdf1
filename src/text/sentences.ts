/** A sentence and its offset in the text. */
export interface Sentence {
  readonly text: string
  readonly start: number
}

const MOST_CHARACTERS = 600
const END = /(?:[.!?…]+["'”’)\]]*(?=\s|$))|[。！？｡]+["'”’」』）]*|\n+/gu
const ABBREVIATION =
  /(?:^|[\s(])(?:dr|mr|mrs|ms|prof|st|vs|no|nr|fig|sec|jr|sr|inc|ltd|co|corp|dept|approx|etc|e\.g|i\.e|cf|al|[A-Za-z])\.$/iu

/** Whether the full stop belongs to an abbreviation ("Dr. Chen", "J. Doe", "e.g. this") or precedes a lower-case word. */
const isInsideSentence = (text: string, start: number, end: number): boolean => {
  if (text[end - 1] !== '.') return false
  if (/^\s+\p{Ll}/u.test(text.slice(end, end + 4))) return true
  const before = text.slice(Math.max(start, end - 12), end)
  return ABBREVIATION.test(before) && !/(?:^|\s)I\.$/.test(before)
}

/** Cuts an overlong sentence at spaces. */
const cut = (sentence: Sentence): Sentence[] => {
  const pieces: Sentence[] = []
  let { text, start } = sentence
  while (text.length > MOST_CHARACTERS) {
    const space = text.lastIndexOf(' ', MOST_CHARACTERS)
    const at = space > MOST_CHARACTERS / 2 ? space : MOST_CHARACTERS
    pieces.push({ text: text.slice(0, at).trimEnd(), start })
    const rest = text.slice(at)
    start += at + (rest.length - rest.trimStart().length)
    text = rest.trimStart()
  }
  if (text !== '') pieces.push({ text, start })
  return pieces
}

const sentenceAt = (text: string, start: number, end: number): Sentence[] => {
  const raw = text.slice(start, end)
  const trimmed = raw.trim()
  return trimmed === '' ? [] : cut({ text: trimmed, start: start + raw.indexOf(trimmed) })
}

/** The sentences of a text. A line break ends a sentence; one of over 600 characters is cut. */
export const sentencesOf = (text: string): Sentence[] => {
  const sentences: Sentence[] = []
  let start = 0
  for (const match of text.matchAll(END)) {
    const end = match.index + match[0].length
    if (isInsideSentence(text, start, end)) continue
    sentences.push(...sentenceAt(text, start, end))
    start = end
  }
  sentences.push(...sentenceAt(text, start, text.length))
  return sentences
}
