/** A piece of a text; `isHit`: the query has this word. */
export interface TextPiece {
  readonly text: string
  readonly isHit: boolean
}

const LEAST_LETTERS = 3
const MOST_WORDS = 20

/** Small words are in every text: to mark them says nothing. */
const COMMON: ReadonlySet<string> = new Set(
  'the and for was are who what when where which with has had did does how'.split(' '),
)

const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** The beginnings of words that are marked: "parked" also finds "parking", as the search does. */
const stemsOf = (query: string): readonly string[] =>
  wordsIn(query)
    .filter(word => word.length >= LEAST_LETTERS && !COMMON.has(word))
    .slice(0, MOST_WORDS)
    .map(word => (word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, '') : word))

/** Cuts a text into pieces, so that the words of a query can be marked. */
export const highlightWords = (text: string, query: string): readonly TextPiece[] => {
  const stems = stemsOf(query)
  if (stems.length === 0) return [{ text, isHit: false }]
  const pieces: TextPiece[] = []
  let plain = ''
  for (const [part] of text.matchAll(/[\p{L}\p{N}]+|[^\p{L}\p{N}]+/gu)) {
    const word = part.toLowerCase()
    if (!stems.some(stem => word.startsWith(stem))) {
      plain += part
      continue
    }
    if (plain !== '') pieces.push({ text: plain, isHit: false })
    pieces.push({ text: part, isHit: true })
    plain = ''
  }
  return plain === '' ? pieces : [...pieces, { text: plain, isHit: false }]
}

const CONTEXT = 160 // characters before the first hit

/** The part of a long text around the first word of the query. */
export const excerptOf = (text: string, query: string, length: number): string => {
  if (text.length <= length) return text
  const pieces = highlightWords(text, query)
  const hit = pieces.findIndex(({ isHit }) => isHit)
  const before = hit < 0 ? 0 : pieces.slice(0, hit).reduce((sum, piece) => sum + piece.text.length, 0)
  const from = Math.max(0, Math.min(before - CONTEXT, text.length - length))
  return `${from > 0 ? '…' : ''}${text.slice(from, from + length)}${from + length < text.length ? '…' : ''}`
}

/** Whether a title is made of the first words of a text: then it says nothing beside it. */
export const repeatsText = (title: string, text: string): boolean => text.startsWith(title.replace(/…$/, ''))
