import { describe, expect, it, vi } from 'vitest'
import { callerOf } from '../../../test/support/scripted-server.ts'
import { Json } from '../../wire/json/json.ts'
import { mcpName, withEnvelope } from './envelope.ts'

const PREFIX = 'io.modelcontextprotocol/'

describe('the envelope of a modern request', () => {
  it('is unchanged, byte for byte, if the client wrote it', () => {
    const params = Json.parse(Buffer.from(`{"n":1.0, "_meta":{"${PREFIX}protocolVersion":"2026-07-28","x":1e3}}`))
    expect(withEnvelope(params, callerOf())).toBe(params)
  })

  it('is made from the handshake of a legacy session', () => {
    const caller = callerOf({
      revision: '2025-06-18',
      info: Json.of({ name: 'c', version: '2' }),
      capabilities: Json.of({ roots: { listChanged: true }, tasks: {}, sampling: { x: 1 }, elicitation: {} }),
      logLevel: 'info',
    })
    expect(withEnvelope(Json.of({ name: 't' }), caller).toValue()).toEqual({
      name: 't',
      _meta: {
        [`${PREFIX}protocolVersion`]: '2026-07-28',
        [`${PREFIX}clientInfo`]: { name: 'c', version: '2' },
        [`${PREFIX}clientCapabilities`]: { roots: {}, sampling: { x: 1 }, elicitation: {} },
        [`${PREFIX}logLevel`]: 'info',
      },
    })
  })

  it('keeps the other members of _meta', () => {
    const meta = withEnvelope(Json.of({ _meta: { progressToken: 4, 'acme/x': true } }), callerOf()).get('_meta')
    expect(meta?.toValue()).toMatchObject({ progressToken: 4, 'acme/x': true, [`${PREFIX}clientCapabilities`]: {} })
    expect(meta?.has(`${PREFIX}clientInfo`)).toBe(false)
  })

  it('follows the log level when the session changes it', () => {
    const caller = callerOf({ revision: '2025-06-18' })
    const level = (logLevel: 'info' | 'error') =>
      withEnvelope(Json.empty, { ...caller, logLevel })
        .at('_meta', `${PREFIX}logLevel`)
        ?.asString()
    expect([level('info'), level('error'), level('info')]).toEqual(['info', 'error', 'info'])
  })

  it('is made once for each of the clients that share a capabilities object', () => {
    const capabilities = Json.of({ sampling: {} })
    const read = vi.spyOn(capabilities, 'without')
    const callers = [
      callerOf({ capabilities, info: Json.of({ name: 'a' }) }),
      callerOf({ capabilities, info: Json.of({ name: 'b' }) }),
      callerOf({ capabilities }),
    ]
    const names = [...callers, ...callers].map(caller =>
      withEnvelope(Json.empty, caller).at('_meta', `${PREFIX}clientInfo`, 'name')?.asString(),
    )
    expect(names).toEqual(['a', 'b', undefined, 'a', 'b', undefined])
    expect(read).toHaveBeenCalledTimes(callers.length)
  })
})

describe('Mcp-Name', () => {
  it.each([
    ['tools/call', { name: 'echo' }, 'echo'],
    ['resources/read', { uri: 'file:///a b' }, 'file:///a b'],
    ['prompts/get', { name: 'données' }, `=?base64?${Buffer.from('données').toString('base64')}?=`],
    ['tools/call', { name: ' x' }, `=?base64?${Buffer.from(' x').toString('base64')}?=`],
    ['tasks/get', { taskId: 't1' }, 't1'],
    ['tools/list', { name: 'echo' }, undefined],
    ['tools/call', {}, undefined],
  ])('%s %o → %s', (method, params, expected) => {
    expect(mcpName(method, Json.of(params))).toBe(expected)
  })
})
