import { readdirSync, readFileSync } from 'node:fs'
import { join as path } from 'node:path'
import { describe, expect, it } from 'vitest'
import { REVISIONS } from '../../../src/protocol/revisions.ts'
import { Json } from '../../../src/wire/json/json.ts'
import {
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  type Incoming,
  joinBuffers,
  type Message,
  readIncoming,
} from '../../../src/wire/json-rpc.ts'
import { encodeLine, LineDecoder } from '../../../src/wire/ndjson.ts'
import { encodeEvent, SseDecoder } from '../../../src/wire/sse.ts'

// One folder per revision, one below it per type of the specification's schema, a message in each file.
const HERE = import.meta.dirname

/** The end of a type's name says what kind of message it is. */
const KINDS: readonly (readonly [RegExp, Incoming['kind']])[] = [
  [/^JSONRPCBatch/, 'batch'],
  [/Request$/, 'request'],
  [/Notification$/, 'notification'],
  [/Response$/, 'response'],
  [/Error$/, 'error'],
]

interface Specimen {
  readonly name: string
  readonly kind: Incoming['kind'] | undefined
  readonly text: string
}

const specimens = (revision: string): Specimen[] =>
  readdirSync(path(HERE, revision)).flatMap(type =>
    readdirSync(path(HERE, revision, type)).map(file => ({
      name: `${type}/${file}`,
      kind: KINDS.find(([ending]) => ending.test(type))?.[1],
      text: readFileSync(path(HERE, revision, type, file), 'utf8').trimEnd(),
    })),
  )

/** Without the white space between tokens: the form most peers send. */
const compact = (text: string): string => text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')

const rewrite = (message: Message): Buffer => {
  switch (message.kind) {
    case 'request':
      return joinBuffers(encodeRequest(message.id, message.method, message.params))
    case 'notification':
      return joinBuffers(encodeNotification(message.method, message.params))
    case 'response':
      return joinBuffers(encodeResult(message.id, message.result))
    case 'error':
      return joinBuffers(encodeError(message.id, message.error))
    case 'invalid':
      throw new Error(message.reason)
  }
}

const inChunks = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

/** What we write for an error that came without an id. */
const withId = (text: string): string => text.replace('{"jsonrpc":"2.0","error"', '{"jsonrpc":"2.0","id":null,"error"')

describe.each(REVISIONS)('a message of %s', revision => {
  const pretty = specimens(revision)
  const short = pretty.map(specimen => ({ ...specimen, text: compact(specimen.text) }))
  const all = [...short, ...pretty]
  const lines = all.map(({ text }) => text.replaceAll('\n', ' '))

  it('is read as what it is', () => {
    expect(pretty.length).toBeGreaterThan(50)
    for (const { name, kind, text } of all) expect(readIncoming(Buffer.from(text)).kind, name).toBe(kind)
  })

  it('keeps every byte, also inside of something that changes', () => {
    for (const { name, text } of all) {
      expect(Json.parse(Buffer.from(text)).toString(), name).toBe(text)
      const around = Json.parse(Buffer.from(`{"before":0,"message":${text}}`))
      expect(around.without('before').with('after', 1).toString(), name).toBe(`{"message":${text},"after":1}`)
    }
  })

  it('is written again as it was', () => {
    for (const { name, text } of short) {
      const message = readIncoming(Buffer.from(text))
      const written = message.kind === 'batch' ? `[${message.messages.map(rewrite).join(',')}]` : `${rewrite(message)}`
      expect(written, name).toBe(withId(text))
    }
  })

  it.each([1, 7, 1000])('passes through an event stream cut into %i bytes', size => {
    const received: string[] = []
    const decoder = new SseDecoder(event => received.push(event.data.toString()))
    for (const { text } of all)
      for (const chunk of inChunks(joinBuffers(encodeEvent({ id: '1', data: [Buffer.from(text)] })), size))
        decoder.feed(chunk)
    expect(received).toEqual(lines)
  })

  it.each([1, 7, 1000])('passes as a line cut into %i bytes', size => {
    const received: string[] = []
    const decoder = new LineDecoder(line => received.push(line.toString()))
    for (const { text } of all)
      for (const chunk of inChunks(joinBuffers(encodeLine([Buffer.from(text)])), size)) decoder.feed(chunk)
    expect(received).toEqual(lines)
  })
})
