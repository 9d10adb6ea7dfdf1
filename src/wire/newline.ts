export const LF = 0x0a
export const CR = 0x0d
const SPACE = 0x20

/**
 * JSON text without line breaks. Between tokens a line break is white space like any other and inside strings
 * it cannot stand, so a space is the same document. Text without any is returned as it is, not copied.
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
