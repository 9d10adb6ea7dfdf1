interface MediaRange {
  readonly type: string // lower case, without parameters
  readonly quality: number
}

const JSON_TYPE = 'application/json'
const SSE_TYPE = 'text/event-stream'

/** May we answer with JSON? Yes if the header is absent, empty, or names JSON in any width. */
export const acceptsJson = (accept: string | undefined): boolean => accepts(accept, JSON_TYPE)

/** May we answer with an event stream? */
export const acceptsSse = (accept: string | undefined): boolean => accepts(accept, SSE_TYPE)

/** Is that body JSON? A body without a type is given the benefit of the doubt; forms and plain text are not. */
export const isJsonBody = (contentType: string | undefined): boolean => {
  const type = mediaType(contentType)
  return type === '' || type === JSON_TYPE || JSON_LIKE.test(type)
}

/** Is that body an event stream? */
export const isEventStream = (contentType: string | undefined): boolean => mediaType(contentType) === SSE_TYPE

const JSON_LIKE = /^(application|text)\/((.+\+)?json|json-?rpc|jsonrequest)$/

/** The type of a Content-Type header in lower case, without parameters; empty if there is none. */
const mediaType = (header: string | undefined): string => {
  if (header === undefined) return ''
  const end = header.indexOf(';')
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase()
}

/** The most specific range that matches decides, as RFC 9110 12.5.1 has it. */
const accepts = (header: string | undefined, type: string): boolean => {
  if (header === undefined || header.trim() === '') return true
  const ranges = header.split(',').map(readRange)
  const wide = `${type.slice(0, type.indexOf('/'))}/*`
  for (const wanted of [[type], [wide], ['*/*', '*']]) {
    const matches = ranges.filter(range => wanted.includes(range.type))
    if (matches.length > 0) return matches.some(range => range.quality > 0)
  }
  return false
}

const readRange = (text: string): MediaRange => {
  const [type = '', ...parameters] = text.split(';')
  const quality = parameters.map(parameter => /^\s*q\s*=\s*"?([0-9.]+)/i.exec(parameter)?.[1]).find(Boolean)
  return { type: type.trim().toLowerCase(), quality: quality === undefined ? 1 : Number(quality) }
}
