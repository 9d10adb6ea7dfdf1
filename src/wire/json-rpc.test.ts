import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Json } from './json/json.ts'
import { JsonSyntaxError } from './json/scan.ts'
import {
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  type Incoming,
  idKey,
  joinBuffers,
  type Message,
  readIncoming,
  requestBody,
  resultBody,
} from './json-rpc.ts'

const read = (text: string): Incoming => readIncoming(Buffer.from(text))

/** A message as plain data, its Json values as their source text. */
const shown = (message: Incoming): unknown => {
  if (message.kind === 'batch') return { kind: 'batch', messages: message.messages.map(shown) }
  return JSON.parse(
    JSON.stringify(message, (_, value: unknown) => value), // toJSON has turned Json into its value
  )
}

const text = (pieces: Buffer[]) => joinBuffers(pieces).toString()

describe('readIncoming', () => {
  it('tells requests, notifications, responses and errors apart', () => {
    expect(shown(read('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}'))).toEqual({
      kind: 'request',
      id: 1,
      method: 'tools/call',
      params: { name: 'x' },
    })
    expect(shown(read('{"params":{},"method":"a","id":"one","jsonrpc":"2.0","extra":[1]}'))).toEqual({
      kind: 'request',
      id: 'one',
      method: 'a',
      params: {},
    })
    expect(shown(read('{"jsonrpc":"2.0","method":"notifications/initialized"}'))).toEqual({
      kind: 'notification',
      method: 'notifications/initialized',
      params: {},
    })
    expect(shown(read('{"jsonrpc":"2.0","id":0,"result":{"a":1}}'))).toEqual({
      kind: 'response',
      id: 0,
      result: { a: 1 },
    })
    expect(shown(read('{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"No","data":[1]}}'))).toEqual({
      kind: 'error',
      id: 'x',
      error: { code: -32601, message: 'No', data: [1] },
    })
  })

  it('gives absent and null params as Json.empty, and written ones as they are', () => {
    const paramsOf = (message: string) => (read(message) as Extract<Message, { kind: 'request' }>).params
    expect(paramsOf('{"jsonrpc":"2.0","id":1,"method":"ping"}')).toBe(Json.empty)
    expect(paramsOf('{"jsonrpc":"2.0","id":1,"method":"ping","params":null}')).toBe(Json.empty)
    const written = paramsOf('{"jsonrpc":"2.0","id":1,"method":"ping","params":{ }}')
    expect(written).not.toBe(Json.empty)
    expect(written.toString()).toBe('{ }')
  })

  it('keeps ids as they were written', () => {
    for (const id of ['1', '0', '-7', '1.0', '1e3', '12345678901234567890', '1e400', '""', '"1"', '"\\u0041"']) {
      const message = read(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
      expect(message.kind === 'request' && message.id.toString()).toBe(id)
    }
  })

  it.each([
    ['1', undefined, 'expected an object, got number'],
    ['null', undefined, 'expected an object, got null'],
    ['"x"', undefined, 'expected an object, got string'],
    ['[]', undefined, 'the batch is empty'],
    ['{}', undefined, 'jsonrpc must be "2.0"'],
    ['{"id":1,"method":"ping"}', 1, 'jsonrpc must be "2.0"'],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, 'jsonrpc must be "2.0"'],
    ['{"jsonrpc":2.0,"id":"a","method":"ping"}', 'a', 'jsonrpc must be "2.0"'],
    ['{"jsonrpc":"2.0"}', undefined, 'neither method, result nor error'],
    ['{"jsonrpc":"2.0","id":7}', 7, 'neither method, result nor error'],
    ['{"jsonrpc":"2.0","id":7,"error":null}', 7, 'neither method, result nor error'],
    ['{"jsonrpc":"2.0","id":7,"method":1}', 7, 'method must be a string'],
    ['{"jsonrpc":"2.0","id":7,"method":"a","params":[1]}', 7, 'params must be an object, got array'],
    ['{"jsonrpc":"2.0","id":7,"method":"a","params":"x"}', 7, 'params must be an object, got string'],
    ['{"jsonrpc":"2.0","method":"a","params":[1]}', undefined, 'params must be an object, got array'],
    ['{"jsonrpc":"2.0","id":null,"method":"a"}', undefined, 'id must be a string or an integer, got null'],
    ['{"jsonrpc":"2.0","id":{},"method":"a"}', undefined, 'id must be a string or an integer, got object'],
    ['{"jsonrpc":"2.0","id":true,"method":"a"}', undefined, 'id must be a string or an integer, got boolean'],
    ['{"jsonrpc":"2.0","id":1.5,"method":"a"}', 1.5, 'id must be a string or an integer, got a fraction'],
    ['{"jsonrpc":"2.0","id":7,"method":"a","result":{}}', 7, 'method and result or error exclude each other'],
    ['{"jsonrpc":"2.0","id":7,"method":"a","error":{}}', 7, 'method and result or error exclude each other'],
    ['{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}', 7, 'result and error exclude each other'],
    ['{"jsonrpc":"2.0","id":7,"result":[1]}', 7, 'result must be an object, got array'],
    ['{"jsonrpc":"2.0","id":null,"result":{}}', undefined, 'a result needs the id of its request'],
    ['{"jsonrpc":"2.0","result":{}}', undefined, 'a result needs the id of its request'],
  ])('refuses %s', (message, id, reason) => {
    expect(shown(read(message))).toEqual(
      id === undefined ? { kind: 'invalid', reason } : { kind: 'invalid', id, reason },
    )
  })

  it('takes null for absent where JSON-RPC 1.0 servers write it', () => {
    expect(shown(read('{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}'))).toEqual({
      kind: 'response',
      id: 1,
      result: { a: 1 },
    })
    expect(shown(read('{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}'))).toEqual({
      kind: 'error',
      id: 1,
      error: { code: 1, message: 'm' },
    })
    expect(shown(read('{"jsonrpc":"2.0","id":1,"result":null}'))).toEqual({ kind: 'response', id: 1, result: {} })
  })

  it.each([
    ['{"code":"-32000","message":"m"}', { code: -32000, message: 'm' }],
    ['{"code":"E_AUTH","message":"m"}', { code: -32603, message: 'm', data: { code: 'E_AUTH', message: 'm' } }],
    ['{"code":1.5,"message":"m","data":1}', { code: -32603, message: 'm', data: 1 }],
    ['{"code":-1}', { code: -1, message: 'Unknown error', data: { code: -1 } }],
    ['{"code":-1,"message":{"x":1}}', { code: -1, message: 'Unknown error', data: { code: -1, message: { x: 1 } } }],
    ['{"code":null,"message":"m"}', { code: -32603, message: 'm', data: { code: null, message: 'm' } }],
    ['{"code":[5],"message":"m"}', { code: -32603, message: 'm', data: { code: [5], message: 'm' } }],
    ['{"code":"","message":"m"}', { code: -32603, message: 'm', data: { code: '', message: 'm' } }],
    ['"it broke"', { code: -32603, message: 'it broke', data: 'it broke' }],
    ['17', { code: -32603, message: 'Unknown error', data: 17 }],
    ['{}', { code: -32603, message: 'Unknown error', data: {} }],
  ])('makes a usable error of %s', (error, wanted) => {
    expect(shown(read(`{"jsonrpc":"2.0","id":1,"error":${error}}`))).toEqual({ kind: 'error', id: 1, error: wanted })
  })

  it('takes an error without a usable id, which answers what could not be read', () => {
    for (const id of ['"id":null,', '', '"id":{},'])
      expect(shown(read(`{"jsonrpc":"2.0",${id}"error":{"code":-32700,"message":"m"}}`))).toEqual({
        kind: 'error',
        error: { code: -32700, message: 'm' },
      })
  })

  it('reads every message of a batch on its own', () => {
    expect(shown(read('[{"jsonrpc":"2.0","id":1,"method":"a"},{"id":2},[],{"jsonrpc":"2.0","method":"b"}]'))).toEqual({
      kind: 'batch',
      messages: [
        { kind: 'request', id: 1, method: 'a', params: {} },
        { kind: 'invalid', id: 2, reason: 'jsonrpc must be "2.0"' },
        { kind: 'invalid', reason: 'expected an object, got array' },
        { kind: 'notification', method: 'b', params: {} },
      ],
    })
  })

  it('believes the last of repeated members of an answer', () => {
    expect(
      shown(read('{"jsonrpc":"2.0","id":1,"result":{"a":1},"id":2,"r\\u0065sult":{},"__proto__":{"error":{}}}')),
    ).toEqual({ kind: 'response', id: 2, result: {} })
  })

  it('refuses repeated members of a call', () => {
    expect(shown(read('{"jsonrpc":"2.0","id":1,"method":"a","m\\u0065thod":"b"}'))).toMatchObject({ kind: 'invalid' })
  })

  it('throws JsonSyntaxError for what is no JSON, and for nothing else', () => {
    expect(() => read('{"jsonrpc"')).toThrow(JsonSyntaxError)
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'result', 'error'),
          fc.oneof(fc.constant('2.0'), fc.jsonValue()),
        ),
        value => {
          expect(['request', 'notification', 'response', 'error', 'invalid']).toContain(
            read(JSON.stringify(value)).kind,
          )
        },
      ),
    )
  })
})

describe('idKey', () => {
  const key = (text: string) => idKey(Json.parse(Buffer.from(text)))

  it('tells numbers from strings and takes equal ids for equal', () => {
    expect(key('1')).not.toBe(key('"1"'))
    expect(key('1.0')).toBe(key('1'))
    expect(key('-0')).toBe(key('0'))
    expect(key('"\\u0031"')).toBe(key('"1"'))
    expect(key('12345678901234567890')).not.toBe(key('12345678901234567891'))
    expect(key('9007199254740993')).not.toBe(key('9007199254740992'))
    expect(key('""')).not.toBe(key('0'))
  })

  it('agrees with the key of what we wrote ourselves', () => {
    fc.assert(
      fc.property(fc.oneof(fc.maxSafeInteger(), fc.string({ unit: 'binary' })), id => {
        const message = readIncoming(joinBuffers(encodeRequest(id, 'm', Json.empty)))
        expect(message.kind === 'request' && idKey(message.id)).toBe(idKey(Json.of(id)))
      }),
    )
  })
})

describe('writing', () => {
  const value = Json.parse(Buffer.from('{ "n": 1.0 }'))

  it('puts values in as they are and leaves out empty params', () => {
    expect(text(encodeRequest(1, 'a"b', Json.empty))).toBe('{"jsonrpc":"2.0","id":1,"method":"a\\"b"}')
    expect(text(encodeRequest('x', 'm', value))).toBe('{"jsonrpc":"2.0","id":"x","method":"m","params":{ "n": 1.0 }}')
    expect(text(encodeRequest(Json.of('x'), 'm', value.without('n')))).toBe(
      '{"jsonrpc":"2.0","id":"x","method":"m","params":{}}',
    )
    expect(text(encodeNotification('m', Json.empty))).toBe('{"jsonrpc":"2.0","method":"m"}')
    expect(text(encodeNotification('m', value))).toBe('{"jsonrpc":"2.0","method":"m","params":{ "n": 1.0 }}')
    expect(text(encodeResult(Json.parse(Buffer.from('1.0')), value))).toBe(
      '{"jsonrpc":"2.0","id":1.0,"result":{ "n": 1.0 }}',
    )
    expect(text(encodeError(Json.of(1), { code: -1, message: 'm\n' }))).toBe(
      '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m\\n"}}',
    )
    expect(text(encodeError(undefined, { code: -1, message: '', data: value }))).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"","data":{ "n": 1.0 }}}',
    )
  })

  it('is read back as what was written', () => {
    const plain = fc.dictionary(fc.string(), fc.jsonValue()).map(object => Json.of(JSON.parse(JSON.stringify(object))))
    fc.assert(
      fc.property(fc.oneof(fc.integer(), fc.string()), fc.string(), plain, (id, method, params) => {
        expect(shown(readIncoming(joinBuffers(encodeRequest(id, method, params))))).toEqual({
          kind: 'request',
          id,
          method,
          params: params.toValue(),
        })
        expect(shown(readIncoming(joinBuffers(encodeResult(id, params))))).toEqual({
          kind: 'response',
          id,
          result: params.toValue(),
        })
        const error = { code: 5, message: method, data: params }
        expect(shown(readIncoming(joinBuffers(encodeError(id, error))))).toEqual({
          kind: 'error',
          id,
          error: { ...error, data: params.toValue() },
        })
      }),
    )
  })

  it('is the same as one body, whatever the text and its length', () => {
    const bytesOf = (body: string | Buffer | readonly Buffer[]): string =>
      (typeof body === 'string'
        ? Buffer.from(body, 'latin1')
        : Buffer.isBuffer(body)
          ? body
          : joinBuffers(body)
      ).toString()
    const long = fc.constantFrom('x', 'é', '語').map(letter => letter.repeat(6000))
    const plain = fc
      .dictionary(fc.string(), fc.oneof(fc.jsonValue(), long))
      .map(object => Json.parse(Buffer.from(JSON.stringify(object))))
    const params = fc.oneof(
      plain,
      plain.map(object => object.with('_meta', { é: 1 })),
      fc.constant(Json.empty),
    )
    fc.assert(
      fc.property(fc.nat(), fc.string({ unit: 'grapheme' }), params, (id, method, value) => {
        expect(bytesOf(requestBody(id, method, value))).toBe(text(encodeRequest(id, method, value)))
        const named = Json.of(method)
        expect(bytesOf(resultBody(named, value))).toBe(text(encodeResult(named, value)))
      }),
    )
  })

  it('joins pieces without copying a single one', () => {
    const piece = Buffer.from('a')
    expect(joinBuffers([piece])).toBe(piece)
    expect(joinBuffers([piece, piece]).toString()).toBe('aa')
    expect(joinBuffers([]).length).toBe(0)
  })
})
