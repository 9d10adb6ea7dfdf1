import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { SIMILAR_PAIRS } from '../../../src/servers/memory/extract/embedder.ts'

/** A request a scripted endpoint got. */
export interface Asked {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: {
    readonly model: string
    readonly messages: readonly { readonly role: string; readonly content: string }[]
    readonly input: readonly string[]
    readonly response_format?: { readonly type: string }
    readonly [member: string]: unknown
  }
}

/** What it does with one: answer, or nothing at all. */
export type Scripted =
  | { readonly status?: number; readonly json?: unknown; readonly text?: string; readonly headers?: object }
  | 'silence'

type Script = (asked: Asked, nth: number) => Scripted

const read = async (request: IncomingMessage): Promise<Asked> => {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = JSON.parse(Buffer.concat(chunks).toString('utf8'))
  return { path: request.url ?? '', headers: request.headers, body }
}

const reply = (scripted: Scripted, response: ServerResponse): void => {
  if (scripted === 'silence') return
  const { status = 200, json, text = JSON.stringify(json), headers = {} } = scripted
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

/** An endpoint that does what a test says and keeps what it was asked. */
export const scriptedEndpoint = async (script: Script) => {
  const asked: Asked[] = []
  let current = script
  const server = createServer((request, response) => {
    void read(request).then(one => {
      asked.push(one)
      reply(current(one, asked.length), response)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const stop = (): Promise<void> =>
    new Promise(resolve => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  onTestFinished(stop)
  const { port } = server.address() as AddressInfo
  const become = (other: Script): void => {
    current = other
  }
  return { url: `http://127.0.0.1:${port}/v1`, asked, become, stop }
}

/** What a chat model says, in the words of the interface. */
export const said = (value: unknown, usage?: object): Scripted => ({
  json: {
    choices: [
      {
        message: { role: 'assistant', content: typeof value === 'string' ? value : JSON.stringify(value) },
        finish_reason: 'stop',
      },
    ],
    ...(usage && { usage }),
  },
})

/** A number between -1 and 1 that depends on nothing but its seed. */
const chance = (seed: string): number => {
  let hash = 2_166_136_261
  for (const letter of seed) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16_777_619)
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_507)
  hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 31 - 1
}

/** A vector that says nothing about its text. */
export const noise = (text: string, length = 64): number[] => Array.from({ length }, (_, at) => chance(`${text} ${at}`))

const MEANINGS: ReadonlyMap<string, string> = new Map(
  SIMILAR_PAIRS.flatMap((pair, place) => pair.map(sentence => [sentence, `pair ${place}`] as const)),
)

/** A vector of what a text means, as far as this little model knows. */
export const meaning = (text: string, length = 64, concepts: Readonly<Record<string, string>> = {}): number[] => {
  const known = Object.entries(concepts).filter(([word]) => text.toLowerCase().includes(word))
  const parts = [MEANINGS.get(text) ?? text, ...known.flatMap(([, concept]) => Array(4).fill(concept) as string[])]
  const vectors = parts.map(part => noise(part, length))
  return Array.from({ length }, (_, at) => vectors.reduce((sum, vector) => sum + (vector[at] ?? 0), 0))
}

/** What an embedding model answers. */
export const embedded = (texts: readonly string[], vector: (text: string) => number[]): Scripted => ({
  json: {
    data: texts.map((text, index) => ({ index, embedding: vector(text) })),
    usage: { total_tokens: texts.length },
  },
})
