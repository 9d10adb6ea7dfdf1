// Secrets never reach the page: the gateway sends ${hidden:<id>} in their place and puts them back when it is written back.

const WHOLE = /^\$\{hidden(:[0-9a-f]+)?\}$/
const PART = /\$\{hidden(:[0-9a-f]+)?\}/g

/** True if a value is one secret as a whole. */
export const isHidden = (value: unknown): boolean => typeof value === 'string' && WHOLE.test(value)

/** True if a part of a value is a secret. */
export const hasHiddenPart = (value: unknown): boolean => typeof value === 'string' && value.search(PART) >= 0

/** A value for people to read: secrets are dots. */
export const shownText = (value: string): string => value.replace(PART, '••••••')

const REFERENCE = /\$\{[^}]*\}/
const SECRET_NAME = /secret|passw|token|key|credential|auth|cookie/i

/** True for a literal value under a name that promises a secret: a variable would be the better place. */
export const shouldBeReference = (name: string, value: string): boolean =>
  SECRET_NAME.test(name) && value !== '' && !REFERENCE.test(value)
