export const LF = 0x0a
export const CR = 0x0d
const SPACE = 0x20

/**
 * JSON text without line breaks. JSON has line breaks only between tokens, so spaces in their place make the same
 * document. Text without line breaks is returned without a copy.
 */
export const withoutLineBreaks = (text: Buffer): Buffer => {
  const lf = text.indexOf(LF)
  const cr = text.indexOf(CR)
  if (lf < 0 && cr < 0) return text
  const copy = Buffer.from(text)
  for (let at = lf; at >= 0; at = copy.indexOf(LF, at)) copy[at] = SPACE
  for (let at = cr; at >= 0; at = copy.indexOf(CR, at)) copy[at] = SPACE
  return copy
}
