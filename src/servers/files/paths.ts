import { sep } from 'node:path'

/** Why something of the project is not given out; the text is for the caller to read. */
export class Refused extends Error {}

const OUTSIDE = 'only what lies inside the project can be read; give a path relative to its root, like "src/main.ts"'
const DEVICE_NAME = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/** The segments of a path relative to the root, none for the root itself; throws Refused for every trick we know. */
export const segmentsOf = (path: string, separator: string = sep): string[] => {
  const isWindows = separator === '\\'
  const fault = faultOf(path, isWindows) ?? faultOf(unescaped(path), isWindows)
  if (fault) throw new Refused(`${quoted(path)} is refused: ${fault}`)
  return path.split(isWindows ? /[\\/]/ : '/').filter(segment => segment !== '' && segment !== '.')
}

/** A path as it is shown: bounded, on one line, whatever it holds. */
export const quoted = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)

const faultOf = (path: string, isWindows: boolean): string | undefined => {
  if (path.includes('\0')) return 'a path cannot contain a NUL character'
  if (/^([\\/]|[a-z]:)/i.test(path)) return OUTSIDE
  const segments = path.split(/[\\/]/)
  if (segments.includes('..')) return OUTSIDE
  return isWindows && segments.some(isWindowsTrick) ? 'Windows would take it for another name' : undefined
}

/** Streams, devices, and endings that Windows drops in silence. */
const isWindowsTrick = (segment: string): boolean =>
  segment.includes(':') || DEVICE_NAME.test(segment) || (/[. ]$/.test(segment) && segment !== '.')

/** Nothing here decodes escapes; a path that would be a trick for somebody who does is refused all the same. */
const unescaped = (path: string): string =>
  path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
