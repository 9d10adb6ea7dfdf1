import { createHash } from 'node:crypto'

/** A key of bounded length: a text longer than that many characters is replaced by its hash. */
export const boundedKey = (text: string, longest: number): string =>
  text.length <= longest ? text : createHash('sha256').update(text).digest('base64url')
