import { compileGlob } from './glob.ts'

const PARTS = /^([A-Za-z][A-Za-z0-9+.-]*:)?(\/\/[^/]*)?(.*)$/s
const IGNORED = /[\t\n\r]/g // by everybody who reads URLs as browsers do
const CONTROLS = /^[\0- ]+|[\0- ]+$/g

/** What a URI, or a pattern of URIs, comes to in the hands of a server that reads it generously. */
const plain = (text: string): string => {
  const decoded = decode(text.replace(CONTROLS, '').replace(IGNORED, '')).replaceAll('\\', '/')
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

/** What is left of a URI where its last parts count for nothing: of files nobody reads a query. */
const bare = (read: string): string => read.replace(read.startsWith('file:') ? /[?#].*$/s : /#.*$/s, '')

/** Patterns of URIs, held against all that a server may take a URI for. */
export interface UriGlobs {
  /** Whatever it is taken for is among them. */
  hold(uri: string): boolean
  /** Something it may be taken for is among them. */
  touch(uri: string): boolean
}

export const compileUriGlobs = (patterns: readonly string[]): UriGlobs => {
  const globs = patterns.flatMap(pattern => [pattern, plain(pattern)]).map(compileGlob)
  const ofWhole = patterns.map(pattern => compileGlob(bare(plain(pattern)))) // a part is allowed, so its whole is read
  const fits = (text: string): boolean => globs.some(matches => matches(text))
  return {
    hold: uri => {
      const read = plain(uri)
      const whole = bare(read)
      return fits(uri) && fits(read) && (fits(whole) || ofWhole.some(matches => matches(whole)))
    },
    touch: uri => {
      const read = plain(uri)
      return fits(uri) || fits(read) || fits(bare(read))
    },
  }
}
