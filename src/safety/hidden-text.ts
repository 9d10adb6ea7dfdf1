/** Characters that change nothing that people see, by what they are. */
const HIDDEN: readonly (readonly [what: string, first: number, last: number])[] = [
  ['a control character', 0x00, 0x08],
  ['a control character', 0x0b, 0x0c],
  ['a control character', 0x0e, 0x1f],
  ['a control character', 0x7f, 0x9f],
  ['a soft hyphen', 0xad, 0xad],
  ['an invisible letter', 0x115f, 0x1160],
  ['an invisible letter', 0x180e, 0x180e],
  ['a zero-width character', 0x200b, 0x200d],
  ['a bidirectional override', 0x202a, 0x202e],
  ['a zero-width character', 0x2060, 0x2064],
  ['a bidirectional override', 0x2066, 0x2069],
  ['an invisible letter', 0x3164, 0x3164],
  ['a variation selector', 0xfe00, 0xfe0f],
  ['a zero-width character', 0xfeff, 0xfeff],
  ['an annotation mark', 0xfff9, 0xfffb],
  ['a tag character', 0xe0000, 0xe007f],
  ['a variation selector', 0xe0100, 0xe01ef],
]

const [JOINER, NON_JOINER, BLACK_FLAG, TAG_END] = [0x200d, 0x200c, 0x1f3f4, 0xe007f]
const EMOJI = /^(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f|\u20e3)$/u
const BASE_OF_SELECTOR = /^[\p{Extended_Pictographic}\p{So}\p{Sm}\p{Nd}#*\p{Script=Han}\p{Script=Mongolian}]$/u
/** Scripts in which the joiner and the non-joiner change the shape of letters. */
const JOINED =
  /^[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Myanmar}\p{Script=Khmer}\p{Mn}]$/u

const kindOf = (code: number): string | undefined => {
  if (code >= 0x20 && code < 0x7f) return undefined
  return HIDDEN.find(([, first, last]) => code >= first && code <= last)?.[0]
}

/** Whether a character that is hidden elsewhere belongs to what it stands between. */
const isInPlace = (characters: readonly string[], at: number): boolean => {
  const code = characters[at]?.codePointAt(0) ?? 0
  const [before = '', after = ''] = [characters[at - 1], characters[at + 1]]
  if (code === JOINER && EMOJI.test(before) && EMOJI.test(after)) return true
  if (code === JOINER || code === NON_JOINER) return JOINED.test(before)
  if (code >= 0xfe00 && code <= 0xfe0f) return BASE_OF_SELECTOR.test(before)
  return false
}

/** A hidden character in a text. */
export interface HiddenCharacter {
  readonly what: string
  readonly at: number // its index in characters
}

/** The hidden characters of a text. Emoji, flags, and scripts that need joiners have none. */
export const findHidden = (text: string): readonly HiddenCharacter[] => {
  if (/^[\t\n\r\x20-\x7e]*$/.test(text)) return []
  const characters = [...text]
  const found: HiddenCharacter[] = []
  for (let at = 0; at < characters.length; at++) {
    const code = characters[at]?.codePointAt(0) ?? 0
    if (code === BLACK_FLAG) at = endOfFlag(characters, at)
    const what = kindOf(characters[at]?.codePointAt(0) ?? 0)
    if (what !== undefined && code !== BLACK_FLAG && !isInPlace(characters, at)) found.push({ what, at })
  }
  return found
}

/** The flag of a region is a black flag with at most seven tag characters. */
const endOfFlag = (characters: readonly string[], start: number): number => {
  for (let at = start + 1; at <= start + 7; at++) {
    const code = characters[at]?.codePointAt(0) ?? 0
    if (code === TAG_END) return at
    if (code < 0xe0020 || code > TAG_END) return start
  }
  return start
}

/** The text with its hidden characters written as `\u{…}`; tag characters as the text that they spell. */
export const visibleText = (text: string): string => {
  const hidden = new Set(findHidden(text).map(({ at }) => at))
  if (hidden.size === 0) return text
  return [...text].map((character, at) => (hidden.has(at) ? escapeOf(character) : character)).join('')
}

const escapeOf = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  const isTag = code >= 0xe0020 && code < TAG_END
  return isTag ? `\\u{tag ${String.fromCodePoint(code - 0xe0000)}}` : `\\u{${code.toString(16)}}`
}
