const SHORTEST = 6 // characters; a shorter one would be found in ordinary text

/**
 * The spellings in which another party may repeat secrets: as they are, in a URL, in a form, and each in a text of JSON, also
 * within another. The longest come first, because one may be a part of another.
 */
export const spellingsOf = (secrets: Iterable<string>): readonly string[] => {
  const known = new Set([...secrets].filter(({ length }) => length >= SHORTEST).flatMap(spellingsOfOne))
  return [...known].sort((a, b) => b.length - a.length)
}

const spellingsOfOne = (secret: string): readonly string[] => {
  const inForm = new URLSearchParams([['', secret]]).toString().slice(1)
  const plain = [secret, inUrl(secret), inForm]
  const inJson = plain.map(escapeText)
  return [...plain, ...inJson, ...inJson.map(escapeText)]
}

/** A lone surrogate has no form in a URL. */
const inUrl = (text: string): string => encodeURIComponent(Buffer.from(text).toString())

const escapeText = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The text with a mark instead of each spelling. */
export const withoutSpellings = (text: string, spellings: readonly string[], mark: string): string => {
  let clean = text
  for (const spelling of spellings) if (clean.includes(spelling)) clean = clean.replaceAll(spelling, () => mark)
  return clean
}
