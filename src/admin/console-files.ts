import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import type { HttpRoutes, RequestHandler } from '../fronts/http/listen.ts'
import { PRIVATE_HEADERS, rejectUnread } from '../fronts/http/response.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Log } from '../telemetry/log.ts'
import { APP_FRAME_PATH, serveAppFrame } from './app-frame.ts'

interface ConsoleFilesOptions {
  /** Answers clients that ask for JSON at `/`. */
  readonly index: RequestHandler
  readonly log: Log
  readonly folder?: string | undefined // of the bundled console
}

/**
 * Scripts and styles come from the gateway only, requests go to it only, and no page may frame it. It frames only the page
 * of `app-frame.ts`: no other one of the gateway lets itself be framed.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept, accept-encoding',
  ...PRIVATE_HEADERS,
}

/** Their names contain a hash of the content. */
const FILE_HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
}

const [gzip, brotliDecompress] = [promisify(zlib.gzip), promisify(zlib.brotliDecompress)]
const PREFIX = '/console/'
const FILE_NAME = /^[\w-]+(\.[\w-]+)+$/
const ENCODINGS = ['br', 'gzip'] as const
type Encoding = (typeof ENCODINGS)[number] | 'identity'

/** The files are stored compressed by Brotli, which browsers accept from this machine and over TLS. */
const ENCODERS: Readonly<Record<Encoding, (brotli: Buffer) => Buffer | Promise<Buffer>>> = {
  br: brotli => brotli,
  gzip: async brotli => gzip(await brotliDecompress(brotli)),
  identity: brotli => brotliDecompress(brotli),
}
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: use GET')

/** Beside this module in the package; the sources use the one of the last build. */
const bundledFolder = (): string =>
  [new URL('../console/', import.meta.url), new URL('../../dist/console/', import.meta.url)]
    .map(url => fileURLToPath(url))
    .find(path => existsSync(`${path}index.html.br`)) ?? ''

/** The page of the console at `/`, and its files. They contain no data, so they need no token. */
export const createConsoleRoutes = ({ index, log, folder = bundledFolder() }: ConsoleFilesOptions): HttpRoutes => {
  const encoded = new Map<string, Promise<Buffer>>() // of the few files of the folder

  const contentOf = (name: string, encoding: Encoding): Promise<Buffer> => {
    const key = `${encoding} ${name}`
    const known = encoded.get(key)
    if (known) return known
    const content = readFile(`${folder}${name}.br`).then(ENCODERS[encoding])
    encoded.set(key, content)
    content.catch(() => encoded.delete(key))
    return content
  }

  const sendFile = async (
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> => {
    const accepted = request.headers['accept-encoding'] ?? ''
    const encoding = ENCODINGS.find(each => acceptsEncoding(accepted, each)) ?? 'identity'
    const content = await contentOf(name, encoding)
    response.writeHead(200, {
      ...headers,
      'content-length': content.length,
      ...(encoding !== 'identity' && { 'content-encoding': encoding }),
    })
    response.end(content)
  }

  const notFound = (request: IncomingMessage, response: ServerResponse, text: string): void =>
    rejectUnread(request, response, 404, rpcError('invalidRequest', `Not Found: ${text}`))

  const page: RequestHandler = (request, response) => {
    const missing = 'this build has no console; MCP is served at /mcp. In a clone, npm run build makes it'
    sendFile(request, response, 'index.html', PAGE_HEADERS).catch((error: unknown) => {
      log.warn({ err: error }, 'console could not be shown')
      notFound(request, response, missing)
    })
  }

  const file: RequestHandler = (request, response, path) => {
    const name = path.slice(PREFIX.length)
    const type = TYPES[extname(name)]
    const missing = `${path}; if the gateway was updated, reload the page`
    if (type === undefined || !FILE_NAME.test(name)) return notFound(request, response, missing)
    sendFile(request, response, name, { ...FILE_HEADERS, 'content-type': type }).catch(() =>
      notFound(request, response, missing),
    )
  }

  return {
    '/': readOnly((request, response, path) => {
      const { accept } = request.headers
      return (accept?.includes('text/html') ? page : index)(request, response, path)
    }),
    [APP_FRAME_PATH]: readOnly(serveAppFrame),
    [`${PREFIX}*`]: readOnly(file),
    // Where programs that this gateway replaces have their memory page.
    '/mem': readOnly((_request, response) => void response.writeHead(302, { location: './#/memory' }).end()),
  }
}

const acceptsEncoding = (header: string, name: string): boolean =>
  header.split(',').some(part => {
    const [coding = '', ...parameters] = part.split(';').map(each => each.trim().toLowerCase())
    return coding === name && !parameters.some(each => /^q=0(\.0*)?$/.test(each))
  })

const readOnly =
  (handler: RequestHandler): RequestHandler =>
  (request, response, path) => {
    if (request.method === 'GET' || request.method === 'HEAD') return handler(request, response, path)
    rejectUnread(request, response, 405, GET_ONLY, { allow: 'GET, HEAD' })
  }
