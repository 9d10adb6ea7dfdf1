import { isUtf8 } from 'node:buffer'

const MOST_CHARACTERS = 200
const MOST_READ = 16 * 1024 // of a page
const SHORTEST_SECRET = 6
const SCHEME = /^(bearer|basic|digest|token|apikey)$/i
const HIDDEN = '[hidden]'

/** Headers that hold no secret, and whose values a refusal may be about. */
const OPEN = /^(accept|content-type|content-length|user-agent|traceparent|tracestate|last-event-id|mcp-.*)$/i

/** The first line of what a server wrote beside an HTTP error; undefined where it wrote nothing to read. */
export const refusalText = (body: Buffer, sentHeaders: readonly string[]): string | undefined => {
  if (body.length === 0 || !isUtf8(body)) return undefined
  const text = body.toString('utf8')
  const words = wordsOfJson(text) ?? firstLine(isPage(text) ? wordsOfPage(text.slice(0, MOST_READ)) : text)
  const shown = withoutSecrets(clean(words.slice(0, MOST_READ)), sentHeaders)
  if (shown === '') return undefined
  return shown.length > MOST_CHARACTERS ? `${shown.slice(0, MOST_CHARACTERS)}…` : shown
}

const isPage = (text: string): boolean =>
  /^\s*<(!doctype|html|head|body|\?xml|h1|center|title)/i.test(text.slice(0, 200))

/** `undefined`: it is no JSON; an empty text: it is JSON that says nothing. */
const wordsOfJson = (text: string): string | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  return firstLine(messageIn(value) ?? '')
}

const MEMBERS = ['message', 'error_description', 'detail', 'error', 'title'] as const

const messageIn = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return undefined
  const { error } = value as { error?: unknown }
  if (typeof error === 'object' && error !== null && 'message' in error) return textIn(error.message)
  const found = MEMBERS.map(name => textIn((value as Readonly<Record<string, unknown>>)[name]))
  return found.find(text => text !== undefined)
}

const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** The title of a page, or its first heading, or its first words. */
const wordsOfPage = (page: string): string => {
  const titled = /<(?:title|h1)[^<>]*>([^<]*)</i.exec(page)?.[1] ?? ''
  if (titled.trim() !== '') return titled
  return page.replace(/<(style|script)[^<>]*>[^<]*<\/\1>/gi, '\n').replace(/<[^<>]*>/g, '\n')
}

const firstLine = (text: string): string => /\S[^\r\n]*/.exec(text)?.[0] ?? ''

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** On one line, without tags, control characters and characters that change the direction of what follows. */
const clean = (text: string): string =>
  text
    .replace(/<[^<>]*>/g, '')
    .replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (_, name: string) => ENTITIES[name] ?? '')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .replaceAll('"', "'")
    .trim()

/** A server may repeat what it was sent; the caller who reads this need not know our credentials. */
const withoutSecrets = (text: string, sentHeaders: readonly string[]): string => {
  let shown = text
  for (let i = 0; i + 1 < sentHeaders.length; i += 2) {
    if (OPEN.test(sentHeaders[i] as string)) continue
    for (const part of (sentHeaders[i + 1] as string).split(/\s+/))
      if (part.length >= SHORTEST_SECRET && !SCHEME.test(part)) shown = shown.replaceAll(part, HIDDEN)
  }
  return shown
}
