import { domainToASCII } from 'node:url'
import { compileGlob } from './glob.ts'

const PARTS = /^([A-Za-z][A-Za-z0-9+.-]*:)?(\/\/[^/]*)?(.*)$/s
const IGNORED = /[\t\n\r]/g // by everybody who reads URLs as browsers do
const CONTROLS = /^[\0- ]+|[\0- ]+$/g

/** What a URI, or a pattern of URIs, comes to in the hands of a server that reads it generously. */
const plain = (text: string): string => {
  const decoded = decode(text.replace(CONTROLS, '').replace(IGNORED, '')).replaceAll('\\', '/').normalize()
  const [, scheme = '', authority = '', path = ''] = PARTS.exec(decoded) ?? []
  const host = authority.toLowerCase()
  const isHere = scheme.toLowerCase() === 'file:' && host === '//localhost'
  return `${scheme.toLowerCase()}${isHere ? '//' : host}${walk(path)}`
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}

/** Goes a path as a file system would: no empty steps, none in place, none back beyond its beginning. */
const walk = (path: string): string => {
  const [first = '', ...more] = path.split('/')
  const steps = [first]
  for (const step of more) {
    if (step === '..' && steps.length > 1) steps.pop()
    else if (!['', '.', '..'].includes(step)) steps.push(step)
  }
  const isFolder = ['', '.', '..'].includes(more.at(-1) ?? first)
  return steps.join('/') + (isFolder && more.length > 0 ? '/' : '')
}

/** Ports that a URI may leave out, of schemes whose default a URL parser does not know. */
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
 * What a URL parser makes of it: `file:/x` is `file:///x`, a default port is left out, the host is in lower case and
 * ASCII. Undefined for what is no absolute URL, and for URIs without an authority, such as `urn:isbn:1`.
 */
const parse = (text: string): URL | undefined => {
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

/** The parsed form, with its user info or without. */
const parsed = (text: string, isAnonymous: boolean): string | undefined => {
  const url = parse(text)
  if (!url) return undefined
  const { protocol, username, password, pathname, search, hash } = url
  const user = isAnonymous || username + password === '' ? '' : `${username}${password && `:${password}`}@`
  return plain(`${protocol}//${user}${authorityOf(url)}${pathname}${search}${hash}`)
}

/** What is left of a URI where its last parts count for nothing: of files nobody reads a query. */
const bare = (read: string): string => read.replace(read.startsWith('file:') ? /[?#].*$/s : /#.*$/s, '')

/** Other spellings of the same URI. */
const spellings = (uri: string): readonly string[] => {
  const read = plain(uri)
  return [...new Set([uri, read, parsed(uri, false) ?? read, parsed(read, false) ?? read])]
}

const FILE_AUTHORITY = /^file:\/\/[^/]*/

/** What a server may read that ignores user info, fragments, and the hosts and queries of files. */
const reduced = (uri: string): readonly string[] => {
  const read = plain(uri)
  const texts = [read, parsed(uri, true) ?? read, parsed(read, true) ?? read].map(bare)
  return [...new Set([...texts, ...texts.map(text => text.replace(FILE_AUTHORITY, 'file://'))])]
}

/** Patterns of URIs, held against all that a server may take a URI for. */
export interface UriGlobs {
  /** Whatever it is taken for is among them. */
  hold(uri: string): boolean
  /** Something it may be taken for is among them. */
  touch(uri: string): boolean
}

export const compileUriGlobs = (patterns: readonly string[]): UriGlobs => {
  if (patterns.length === 0) return { hold: () => false, touch: () => false }
  const globs = [...new Set(patterns.flatMap(spellings))].map(compileGlob)
  const ofReduced = [...new Set(patterns.flatMap(reduced))].map(compileGlob) // a part is allowed, so its whole is read
  const fits = (text: string): boolean => globs.some(matches => matches(text))
  return {
    hold: uri =>
      spellings(uri).every(fits) && reduced(uri).every(text => fits(text) || ofReduced.some(matches => matches(text))),
    touch: uri => spellings(uri).some(fits) || reduced(uri).some(fits),
  }
}
