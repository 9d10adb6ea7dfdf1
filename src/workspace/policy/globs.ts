import { domainToASCII } from 'node:url'

/** Whether a whole text matches a pattern. */
export type GlobMatcher = (text: string) => boolean

const ANY = '*'
const ONE = '?'

/**
 * Compiles a pattern with `*` for any characters and `?` for one. Backtracks to the last `*` only, so the time is at most
 * the product of the two lengths.
 */
export const compileGlob = (pattern: string): GlobMatcher => {
  const wanted = [...pattern]
  if (!wanted.some(character => character === ANY || character === ONE)) return text => text === pattern
  return text => matchesAll(wanted, [...text])
}

const matchesAll = (wanted: readonly string[], text: readonly string[]): boolean => {
  let [at, i] = [0, 0]
  let [star, resume] = [-1, 0] // the last `*`, and where the text went on after it
  while (i < text.length) {
    if (wanted[at] === ANY) {
      star = at++
      resume = i
    } else if (wanted[at] === ONE || wanted[at] === text[i]) {
      at++
      i++
    } else if (star >= 0) {
      at = star + 1
      i = ++resume
    } else return false
  }
  while (wanted[at] === ANY) at++
  return at === wanted.length
}

const PARTS = /^([A-Za-z][A-Za-z0-9+.-]*:)?(\/\/[^/]*)?(.*)$/s
const IGNORED = /[\t\n\r]/g // URL parsers ignore these
const CONTROLS = /^[\0- ]+|[\0- ]+$/g

/** A URI, or a pattern of URIs, as a lenient server may read it: decoded, with `/` for `\`, and with its path resolved. */
const normalize = (text: string): string => {
  const decoded = decode(text.replace(CONTROLS, '').replace(IGNORED, '')).replaceAll('\\', '/').normalize()
  const [, scheme = '', authority = '', path = ''] = PARTS.exec(decoded) ?? []
  const host = authority.toLowerCase()
  const isLocal = scheme.toLowerCase() === 'file:' && host === '//localhost'
  return `${scheme.toLowerCase()}${isLocal ? '//' : host}${resolvePath(path)}`
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}

/** Resolves a path as a file system does: without empty, `.` and `..` segments. */
const resolvePath = (path: string): string => {
  const [first = '', ...more] = path.split('/')
  const segments = [first]
  for (const segment of more) {
    if (segment === '..' && segments.length > 1) segments.pop()
    else if (!['', '.', '..'].includes(segment)) segments.push(segment)
  }
  const isFolder = ['', '.', '..'].includes(more.at(-1) ?? first)
  return segments.join('/') + (isFolder && more.length > 0 ? '/' : '')
}

/** Default ports of schemes that the URL parser does not know. */
const PORTS: ReadonlyMap<string, string> = new Map([
  ['postgres:', '5432'],
  ['postgresql:', '5432'],
  ['mysql:', '3306'],
  ['redis:', '6379'],
  ['mongodb:', '27017'],
  ['ssh:', '22'],
  ['sftp:', '22'],
])

/**
 * Parses an absolute URL: `file:/x` is `file:///x`, a default port is left out, the host is in lower case and ASCII.
 * Undefined for other text and for URIs without an authority, such as `urn:isbn:1`.
 */
const parseUrl = (text: string): URL | undefined => {
  try {
    const url = new URL(text)
    return url.host === '' && url.protocol !== 'file:' ? undefined : url
  } catch {
    return undefined
  }
}

const authorityOf = ({ protocol, hostname, port }: URL): string => {
  const host = (domainToASCII(decode(hostname)) || hostname).replace(/\.$/, '')
  return port === '' || PORTS.get(protocol) === port ? host : `${host}:${port}`
}

/** The URL parser's form, with the user info or without. */
const parsedForm = (text: string, isAnonymous: boolean): string | undefined => {
  const url = parseUrl(text)
  if (!url) return undefined
  const { protocol, username, password, pathname, search, hash } = url
  const user = isAnonymous || username + password === '' ? '' : `${username}${password && `:${password}`}@`
  return normalize(`${protocol}//${user}${authorityOf(url)}${pathname}${search}${hash}`)
}

/** Without the fragment, and without the query of a file, which servers ignore. */
const withoutSuffix = (uri: string): string => uri.replace(uri.startsWith('file:') ? /[?#].*$/s : /#.*$/s, '')

/** Spellings of the same URI. */
const spellings = (uri: string): readonly string[] => {
  const read = normalize(uri)
  return [...new Set([uri, read, parsedForm(uri, false) ?? read, parsedForm(read, false) ?? read])]
}

const FILE_AUTHORITY = /^file:\/\/[^/]*/

/** The URI for a server that ignores user info, fragments, and the hosts and queries of files. */
const reduced = (uri: string): readonly string[] => {
  const read = normalize(uri)
  const texts = [read, parsedForm(uri, true) ?? read, parsedForm(read, true) ?? read].map(withoutSuffix)
  return [...new Set([...texts, ...texts.map(text => text.replace(FILE_AUTHORITY, 'file://'))])]
}

/** URI patterns, matched against all readings that a server may have of a URI. */
export interface UriGlobs {
  matchesEvery(uri: string): boolean // every reading: for allow rules
  matchesSome(uri: string): boolean // some reading: for deny rules
}

export const compileUriGlobs = (patterns: readonly string[]): UriGlobs => {
  if (patterns.length === 0) return { matchesEvery: () => false, matchesSome: () => false }
  const globs = [...new Set(patterns.flatMap(spellings))].map(compileGlob)
  const reducedGlobs = [...new Set(patterns.flatMap(reduced))].map(compileGlob) // a fragment is allowed, so its whole is read
  const matches = (text: string): boolean => globs.some(glob => glob(text))
  return {
    matchesEvery: uri =>
      spellings(uri).every(matches) &&
      reduced(uri).every(text => matches(text) || reducedGlobs.some(glob => glob(text))),
    matchesSome: uri => spellings(uri).some(matches) || reduced(uri).some(matches),
  }
}
