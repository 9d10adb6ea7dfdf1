import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { createMediaOutput } from './media.ts'
import { prettyJson, renderToolResult } from './render.ts'
import { styleOf, type Terminal } from './terminal.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-render-'))
})
afterAll(() => rm(folder, { recursive: true }))

const parse = (text: string): Json => Json.parse(Buffer.from(text))

const render = (text: string, isTTY = false): Promise<string> => {
  const stream = Object.assign(new PassThrough(), { isTTY })
  const terminal: Terminal = { input: stream, output: stream, error: stream, env: {}, onInterrupt: () => () => {} }
  const media = createMediaOutput(terminal, folder)
  return renderToolResult(parse(text), { stream, style: styleOf(stream, { NO_COLOR: '1' }), media })
}

it('JSON with line breaks keeps every digit and escape', () => {
  expect(prettyJson(parse('{"a":[12345678901234567890,1.0],"b":{},"c":"\\u00e9","d":[]}'))).toBe(
    '{\n  "a": [\n    12345678901234567890,\n    1.0\n  ],\n  "b": {},\n  "c": "\\u00e9",\n  "d": []\n}',
  )
})

describe('the result of a tool', () => {
  it('shows structured content once, and other text beside it', async () => {
    const structured = '"structuredContent":{"a":1}'
    expect(await render(`{"content":[{"type":"text","text":"{\\"a\\": 1}"}],${structured}}`)).toBe('{\n  "a": 1\n}\n')
    expect(await render(`{"content":[{"type":"text","text":"one"}],${structured}}`)).toBe('one\n{\n  "a": 1\n}\n')
    const wrapped = '{"content":[{"type":"text","text":"one"}],"structuredContent":{"result":"one"}}'
    expect(await render(wrapped)).toBe('one\n')
    const wrappedJson = '{"content":[{"type":"text","text":"{\\"a\\": 1}"}],"structuredContent":{"result":{"a":1}}}'
    expect(await render(wrappedJson)).toBe('{"a": 1}\n')
    const wrappedList = '{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1],"more":true}}'
    expect(await render(wrappedList)).toBe('[1]\n{\n  "result": [\n    1\n  ],\n  "more": true\n}\n')
  })

  it('cannot steer a terminal, and goes into a pipe as it is', async () => {
    const result = '{"content":[{"type":"text","text":"red \\u001b[31m\\u202e text\\n"}]}'
    expect(await render(result, true)).toBe('red [31m text\n')
    expect(await render(result)).toBe('red \u001b[31m\u202e text\n')
  })

  it('saves audio and bytes, and shows links and content that it does not know', async () => {
    const text = await render(
      `{"content":[
        {"type":"audio","data":"AAEC","mimeType":"audio/wav"},
        {"type":"resource","resource":{"uri":"a:b","blob":"/w==","mimeType":"x/../y"}},
        {"type":"resource_link","uri":"test://a","name":"A"},
        {"type":"hologram","size":1.0}]}`,
    )
    const [audio = '', blob = '', link, ...rest] = text.split('\n')
    expect(audio).toBe(`${join(folder, 'audio-1.wav')} (audio/wav, 3 bytes)`)
    expect(blob).toBe(`${join(folder, 'x-2.bin')} (x/../y, 1 bytes)`)
    expect(await readFile(join(folder, 'audio-1.wav'))).toEqual(Buffer.from([0, 1, 2]))
    expect([link, rest.join('\n')]).toEqual(['A <test://a>', '{\n  "type": "hologram",\n  "size": 1.0\n}\n'])
  })
})
