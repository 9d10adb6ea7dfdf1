import { isSecretSetting } from '../../std/secret-names.ts'
import type { ConfigPath } from '../json-text.ts'

// Which texts of a configuration are secrets. References such as ${NAME} are shown as written; what is literal in a place for
// secrets, or looks like one, is not.

/** A part of a text: from, to. */
type Span = readonly [number, number]

const SECRET_KEYS: ReadonlySet<string> = new Set([
  'clientSecret',
  'privateKey',
  'assertion',
  'password',
  'CLIENT_SECRET',
])
/** Headers whose values say nothing about the caller. */
const PLAIN_HEADERS =
  /^(user-agent|accept|accept-language|accept-encoding|content-type|cache-control|x-request-source|x-client-(name|version)|origin|referer)$/i
const PLAIN_VALUE = /^(true|false|on|off|yes|no|\d{1,4}|)$/i
const SCHEME = /^\s*(Bearer|Basic|Token|ApiKey|Digest)\s+/i
const KNOWN_TOKEN =
  /\b(?:sk-|sk_live_|sk_test_|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|hf_|npm_|pypi-|dop_v1_|shpat_|SG\.|drg_|eyJ[\w-]{8,}\.)[\w.=/+-]{8,}/g
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*/g
const LONG_WORD = /[A-Za-z0-9+_=-]{20,}/g
const URL_PASSWORD = /\b[a-z][a-z0-9+.-]*:\/\/[^\s/@:]*:([^\s/@]+)@/gi
const URL_PARAMETER = /[?&;]([\w.-]+)=([^&#\s]*)/g
const REFERENCE = /\$\{([^}]*)\}/g
const FLAG = /^--?([\w-]+)(?:=(.*))?$/s

/** The secret parts of a text at a place of a configuration; `before` is the item before it in a list. */
export const secretSpans = (path: ConfigPath, text: string, before?: unknown): readonly Span[] => {
  const [name, parent] = [String(path.at(-1) ?? ''), String(path.at(-2) ?? '')]
  if (isSecretPlace(name, parent, path)) return literalSpans(text)
  if (parent === 'args') return argumentSpans(text, before)
  return likelySpans(text)
}

const isSecretPlace = (name: string, parent: string, path: ConfigPath): boolean => {
  if (/^(http_)?headers$/i.test(parent)) return !PLAIN_HEADERS.test(name)
  if (parent === 'env') return isSecretSetting(name)
  if (parent === 'secrets' || SECRET_KEYS.has(name)) return true
  if (parent === 'query' && path.at(-3) === 'api') return true
  return name === 'key' && path.includes('memory')
}

const argumentSpans = (text: string, before: unknown): readonly Span[] => {
  const [, flag, value] = FLAG.exec(text) ?? []
  if (flag !== undefined && value !== undefined && isSecretSetting(flag))
    return moved(literalSpans(value), text.length - value.length)
  const header = /^([\w-]+):\s*/.exec(text) // --header "Authorization: Bearer x"
  if (header && isSecretSetting(header[1] ?? ''))
    return moved(literalSpans(text.slice(header[0].length)), header[0].length)
  const given = typeof before === 'string' ? FLAG.exec(before) : undefined
  if (given && given[2] === undefined && isSecretSetting(given[1] ?? '') && !text.startsWith('-'))
    return literalSpans(text)
  const variable = /^([A-Za-z_]\w*)=/.exec(text) // docker run -e NAME=value
  if (variable && isSecretSetting(variable[1] ?? ''))
    return moved(literalSpans(text.slice(variable[0].length)), variable[0].length)
  return likelySpans(text)
}

const moved = (spans: readonly Span[], by: number): readonly Span[] => spans.map(([from, to]) => [from + by, to + by])

/** Everything but references and the scheme of an Authorization header. */
const literalSpans = (text: string): readonly Span[] => {
  const spans: Span[] = []
  const add = (from: number, to: number): void => {
    const piece = text.slice(from, to)
    const [start, end] = [from + (piece.length - piece.trimStart().length), from + piece.trimEnd().length]
    if (!PLAIN_VALUE.test(text.slice(start, end))) spans.push([start, end])
  }
  let from = SCHEME.exec(text)?.[0].length ?? 0
  for (const found of text.matchAll(REFERENCE)) {
    if (found.index > from) add(from, found.index)
    const fallback = (found[1] ?? '').indexOf(':-')
    if (fallback >= 0) add(found.index + 2 + fallback + 2, found.index + found[0].length - 1)
    from = found.index + found[0].length
  }
  if (from < text.length) add(from, text.length)
  return spans
}

/** Parts that look like secrets in a place that need not hold one. */
export const likelySpans = (text: string): readonly Span[] => {
  const spans: Span[] = []
  const add = (from: number, to: number): void => {
    if (from < to && !spans.some(([start, end]) => from < end && to > start)) spans.push([from, to])
  }
  for (const { index, 0: found } of [...text.matchAll(PRIVATE_KEY), ...text.matchAll(KNOWN_TOKEN)])
    add(index, index + found.length)
  for (const { index, 0: found, 1: password = '' } of text.matchAll(URL_PASSWORD)) {
    const start = index + found.length - 1 - password.length
    for (const [from, to] of moved(literalSpans(password), start)) add(from, to)
  }
  for (const { index, 0: found, 1: name = '', 2: value = '' } of text.matchAll(URL_PARAMETER))
    if (isSecretSetting(name))
      for (const [from, to] of moved(literalSpans(value), index + found.length - value.length)) add(from, to)
  for (const { index, 0: word } of text.matchAll(LONG_WORD)) if (isRandom(word)) add(index, index + word.length)
  return spans.sort(([a], [b]) => a - b)
}

const RANDOM_BITS = 3.4 // per character, of keys in hexadecimal or base64; words have less variety and few digits
const RANDOM_LENGTH = 20

const isRandom = (word: string): boolean => {
  const digits = word.replace(/\D/g, '').length
  if (word.length < RANDOM_LENGTH || digits < 3 || !/[a-z]/i.test(word)) return false
  const counts = new Map<string, number>()
  for (const character of word) counts.set(character, (counts.get(character) ?? 0) + 1)
  const bits = [...counts.values()].reduce(
    (sum, count) => sum - (count / word.length) * Math.log2(count / word.length),
    0,
  )
  return (
    bits >= RANDOM_BITS && word.split(/[-_]/).some(part => /\d/.test(part) && /[a-z]/i.test(part) && part.length >= 8)
  )
}
