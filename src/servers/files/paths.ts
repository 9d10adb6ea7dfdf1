import { sep } from 'node:path'

/** A path or request this server does not serve; the message is for the caller. */
export class Rejected extends Error {}

const OUTSIDE = 'only paths inside the project can be read; give a path relative to its root, like "src/main.ts"'
const DEVICE_NAME = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/** The segments of a path relative to the root, none for the root itself. Throws Rejected for a path that could leave it. */
export const segmentsOf = (path: string, separator: string = sep): string[] => {
  const isWindows = separator === '\\'
  // Escapes are never decoded here. A path that would be unsafe once decoded is rejected all the same.
  const fault = faultOf(path, isWindows) ?? faultOf(decodeEscapes(path), isWindows)
  if (fault) throw new Rejected(`${quoted(path)} is refused: ${fault}`)
  return path.split(isWindows ? /[\\/]/ : '/').filter(segment => segment !== '' && segment !== '.')
}

/** A path for a message: on one line, at most 200 characters. */
export const quoted = (path: string): string => JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path)

const faultOf = (path: string, isWindows: boolean): string | undefined => {
  if (path.includes('\0')) return 'a path cannot contain a NUL character'
  if (/^([\\/]|[a-z]:)/i.test(path)) return OUTSIDE
  const segments = path.split(/[\\/]/)
  if (segments.includes('..')) return OUTSIDE
  return isWindows && segments.some(isSpecialOnWindows) ? 'Windows would read it as another name' : undefined
}

/** Streams, devices, and trailing characters that Windows ignores. */
const isSpecialOnWindows = (segment: string): boolean =>
  segment.includes(':') || DEVICE_NAME.test(segment) || (/[. ]$/.test(segment) && segment !== '.')

const decodeEscapes = (path: string): string =>
  path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))

/** The URI of a path. URIs begin at the project root and do not show where the project is on the machine. */
export const fileUri = (path: string): string => `file:///${path.split('/').map(encodeURIComponent).join('/')}`

/** The path of a URI, decoded; undefined if the URI is not a file of the project. */
export const pathOf = (uri: string): string | undefined => {
  if (!uri.startsWith('file:///')) return undefined
  try {
    return decodeURIComponent(uri.slice('file:///'.length))
  } catch {
    return undefined
  }
}
