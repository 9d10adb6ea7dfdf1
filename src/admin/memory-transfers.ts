import type { IncomingMessage } from 'node:http'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { PRIVATE_HEADERS } from '../fronts/http/response.ts'
import { BodyAborted } from '../wire/http-body.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'
import { MEMORY_PARAMETERS, type MemoryAccess, SCOPE_PARAMETERS, scopeOf } from './memory-access.ts'

/** The formats that can be imported. */
export const IMPORT_FORMATS = ['dragoman', 'server-memory', 'graphiti', 'chat', 'markdown', 'text'] as const

/** The largest file that is imported over HTTP. */
export const MOST_IMPORT_BYTES = 32 * 1024 * 1024

const LONGEST_NAME = 200
const STALLED_MS = 60_000 // a reader that takes nothing for so long holds the snapshot of a store no longer
const MIB = 1024 * 1024

/** The endpoints that read a file into a memory, and write one. Both are streams: nothing is held as a whole. */
export const createMemoryTransfers = (access: MemoryAccess): readonly AdminEndpoint[] => [
  {
    method: 'POST',
    path: '/admin/memory/import',
    access: 'owner',
    summary: 'Imports a file, which is the body of the request; it can be repeated',
    parameters: {
      ...MEMORY_PARAMETERS,
      name: { type: 'string', description: 'of the file' },
      modified: { type: 'integer', description: 'when it was changed last, in milliseconds' },
      format: { type: 'string', enum: IMPORT_FORMATS, description: 'default: detected' },
      group: { type: 'string', description: 'default: the one that the file names' },
    },
    bodyMedia: 'application/octet-stream',
    run: async call => {
      const { query, request } = call
      if (Number(request.headers['content-length'] ?? 0) > MOST_IMPORT_BYTES) throw tooLarge()
      const modified = timeIn(query.get('modified'))
      const { content, isTooLarge } = boundedBody(request)
      const upload = {
        name: (query.get('name') || 'import').slice(-LONGEST_NAME),
        modified,
        format: query.get('format') || undefined,
        group: query.get('group') || undefined,
        content,
      }
      return access.run(call, 'imported', upload).catch((error: unknown) => {
        throw isTooLarge() ? tooLarge() : error
      })
    },
  },
  {
    method: 'GET',
    path: '/admin/memory/export',
    access: 'viewer',
    summary: 'All of a memory, or of a group of it, as JSON lines',
    parameters: SCOPE_PARAMETERS,
    media: 'application/x-ndjson',
    isAudited: true,
    run: async call => {
      const { group } = scopeOf(call)
      const lines = await access.run(call, 'exported', { group })
      const name = `memory${group === undefined ? '' : `-${group}`}.jsonl`
      await sendStream(call, lines, {
        'content-type': 'application/x-ndjson',
        'content-disposition': `attachment; filename="${name}"`,
        ...PRIVATE_HEADERS,
      })
    },
  },
]

const tooLarge = (): AdminError =>
  new AdminError(
    413,
    `The file is larger than ${MOST_IMPORT_BYTES / MIB} MiB, the most that is imported over HTTP; ` +
      'import it on the machine of the gateway: dragoman memory import FILE',
  )

const timeIn = (text: string | null): number | undefined => {
  if (text === null || text === '') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new AdminError(400, 'modified: expected a time in milliseconds')
}

/** The body as a stream, which fails after too many bytes or if the client leaves. The request itself stays: it is answered. */
const boundedBody = (request: IncomingMessage) => {
  let length = 0
  const bounded = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      length += chunk.length
      done(length > MOST_IMPORT_BYTES ? tooLarge() : null, chunk)
    },
  })
  request.pipe(bounded)
  request.once('close', () => request.complete || bounded.destroy(new BodyAborted()))
  bounded.once('error', () => request.unpipe(bounded))
  return {
    content: Readable.toWeb(bounded) as ReadableStream<Uint8Array>,
    isTooLarge: () => length > MOST_IMPORT_BYTES,
  }
}

const sendStream = async (
  { response }: AdminCall,
  content: ReadableStream<Uint8Array>,
  headers: Readonly<Record<string, string>>,
): Promise<void> => {
  response.writeHead(200, headers)
  response.setTimeout(STALLED_MS, () => response.destroy())
  await pipeline(Readable.fromWeb(content as Parameters<typeof Readable.fromWeb>[0]), response)
}
