import { isUtf8 } from 'node:buffer'

const SNIFFED_BYTES = 8000

/** True if there is a NUL near the beginning, as git decides it. */
export const isBinary = (bytes: Buffer): boolean => bytes.subarray(0, SNIFFED_BYTES).includes(0)

const UTF8 = new TextDecoder('utf-8')
const WESTERN = new TextDecoder('windows-1252')

/** Text without its byte order mark. Bytes that are not UTF-8 are read as windows-1252, which accepts all bytes. */
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

/** The media type for the extension of a path. */
export const mimeTypeOf = (path: string): string | undefined => {
  const extension = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(TYPES, extension) ? TYPES[extension] : undefined
}
