import type { NameStyle } from '../../config/snapshot.ts'

const MOST_EACH = 4 * 1024 // bytes
const MOST_IN_ALL = 16 * 1024
const MARK = '…'

/** What one server tells models about itself. */
export interface ServerInstructions {
  readonly namespace: string
  readonly text: string
}

const SEPARATORS: Readonly<Record<NameStyle, string | undefined>> = { prefix: '__', slash: '/', plain: undefined }

/** The instructions of several servers as one text, each under its name; undefined where nobody has any. */
export const mergeInstructions = (manuals: readonly ServerInstructions[], style: NameStyle): string | undefined => {
  const sections = manuals.flatMap(({ namespace, text }) =>
    text.trim() === '' ? [] : `## ${namespace}\n\n${cut(text.trim(), MOST_EACH)}`,
  )
  if (sections.length === 0) return undefined
  const separator = SEPARATORS[style]
  const rule =
    separator &&
    `This server joins several. Tools and prompts of each are named \`<server>${separator}<name>\`; below, each calls its own by \`<name>\`.`
  return cut([rule, ...sections].filter(part => part !== undefined).join('\n\n'), MOST_IN_ALL)
}

const WORD_CHARACTER = '[\\p{L}\\p{N}]'
const SPECIAL = /[\\^$.*+?()[\]{}|]/g

/** Whether one of these names stands in a text as a word of its own, in whichever case. */
export const mentionsAny = (text: string, names: readonly string[]): boolean =>
  names.some(name =>
    new RegExp(`(?<!${WORD_CHARACTER})${name.replace(SPECIAL, '\\$&')}(?!${WORD_CHARACTER})`, 'iu').test(text),
  )

/** The beginning of a text that fits, never ending within a character. */
const cut = (text: string, most: number): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  let end = most - Buffer.byteLength(MARK)
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + MARK
}
