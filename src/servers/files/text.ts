import { isUtf8 } from 'node:buffer'

const LOOK_AT = 8000

/** As git decides it: a NUL near the beginning. */
export const isBinary = (bytes: Buffer): boolean => bytes.subarray(0, LOOK_AT).includes(0)

const UTF8 = new TextDecoder('utf-8')
const WESTERN = new TextDecoder('windows-1252')

/** Text without its byte order mark; what is not UTF-8 is read as the old western encoding, which takes every byte. */
export const decodeText = (bytes: Buffer): string => (isUtf8(bytes) ? UTF8 : WESTERN).decode(bytes)

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css',
  csv: 'text/csv',
  gif: 'image/gif',
  html: 'text/html',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  js: 'text/javascript',
  json: 'application/json',
  md: 'text/markdown',
  mjs: 'text/javascript',
  pdf: 'application/pdf',
  png: 'image/png',
  svg: 'image/svg+xml',
  toml: 'application/toml',
  ts: 'text/x-typescript',
  tsx: 'text/x-typescript',
  webp: 'image/webp',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  zip: 'application/zip',
}

/** The media type that the ending of a name suggests. */
export const mimeTypeOf = (path: string): string | undefined => {
  const ending = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined
}
