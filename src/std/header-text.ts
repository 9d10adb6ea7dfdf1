// What HTTP allows in headers, for everything that takes them from users.

/** The name of an HTTP header. */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what HTTP forbids
const NOT_IN_HEADERS = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/

/** Why a text cannot be sent as the value of a header. */
export const headerValueError = (value: string): string | undefined =>
  NOT_IN_HEADERS.test(value) ? 'holds a character that cannot be sent in an HTTP header' : undefined

/** Reads `Name: value`; the name in lower case. Undefined if the text is no header. */
export const readHeaderLine = (text: string): readonly [name: string, value: string] | undefined => {
  const at = text.indexOf(':')
  const [name, value] = [text.slice(0, at), text.slice(at + 1).trim()]
  return at > 0 && HEADER_NAME.test(name) && !headerValueError(value) ? [name.toLowerCase(), value] : undefined
}
