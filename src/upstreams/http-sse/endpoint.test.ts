import { describe, expect, it } from 'vitest'
import type { Redirect } from '../http/redirect.ts'
import { readEndpoint } from './endpoint.ts'

const from = (url: string, keepsSecrets = true): Redirect => {
  const { origin, pathname, search } = new URL(url)
  return { target: { origin, path: pathname + search }, keepsSecrets }
}
const HOME = from('https://tools.test/app/sse')

const clue = (event: string, text: string, at = HOME, mayCross = false) =>
  readEndpoint({ event, data: Buffer.from(text), id: undefined }, at, mayCross)

const addressOf = (event: string, text: string, at = HOME, mayCross = false) => {
  const found = clue(event, text, at, mayCross)
  return found.kind === 'named' ? found.endpoint.target.origin + found.endpoint.target.path : found.kind
}

describe('the endpoint of a channel', () => {
  it.each([
    ['/messages/?session_id=1', 'https://tools.test/messages/?session_id=1'],
    ['/message?sessionId=1', 'https://tools.test/message?sessionId=1'],
    ['messages?session_id=1', 'https://tools.test/app/messages?session_id=1'],
    ['?session_id=1', 'https://tools.test/app/sse?session_id=1'],
    ['https://tools.test/m?session_id=1', 'https://tools.test/m?session_id=1'],
    [' /m#part\n', 'https://tools.test/m'],
  ])('is %s where the server says so', (text, expected) => {
    expect(addressOf('endpoint', text)).toBe(expected)
  })

  it('may be the first data, without a name', () => {
    expect(addressOf('message', 'https://tools.test/messages/?session_id=1')).toBe(
      'https://tools.test/messages/?session_id=1',
    )
    expect(addressOf('message', '/messages?session_id=1')).toBe('https://tools.test/messages?session_id=1')
  })

  it.each([
    ['message', '{"jsonrpc":"2.0","method":"a/b"}'],
    ['message', '["/a"]'],
    ['message', 'hello there / friend?'],
    ['message', 'connected'],
    ['lifecycle', '{"jsonrpc":"2.0","method":"streamOpened"}'],
    ['response', '{"jsonrpc":"2.0","id":1,"result":{}}'],
  ])('is where the channel is after a first %s %s', (event, text) => {
    expect(addressOf(event, text)).toBe('same')
  })

  it.each([
    ['ping', ''],
    ['ping', '/ping'],
    ['endpoint', ' '],
    ['message', ''],
  ])('is still to come after %s "%s"', (event, text) => {
    expect(addressOf(event, text)).toBe('none')
  })

  it.each(['ftp://tools.test/x', 'http://', 'javascript:alert(1)'])('is never %s', text => {
    expect(clue('endpoint', text)).toMatchObject({
      kind: 'invalid',
      failure: { reason: 'upstream_protocol', text: 'named an endpoint that is no HTTP URL' },
    })
  })
})

describe('an endpoint on another origin', () => {
  const strange = [
    'https://evil.test/m',
    'https://tools.test:8443/m',
    '//evil.test/m',
    'https://tools.test.evil.test/m',
  ]

  it.each(strange)('%s is refused, and the refusal says how to allow it', text => {
    expect(clue('endpoint', text)).toMatchObject({
      kind: 'invalid',
      failure: { reason: 'upstream_protocol', text: expect.stringContaining('"allowCrossOriginEndpoint": true') },
    })
  })

  it.each(strange)('%s is used where the operator allows it', text => {
    expect(addressOf('endpoint', text, HOME, true)).toBe(new URL(text, 'https://tools.test').href)
  })

  it('never downgrades the connection, whatever scheme the server names', () => {
    expect(addressOf('endpoint', 'http://tools.test/m?session_id=1')).toBe('https://tools.test/m?session_id=1')
    expect(addressOf('endpoint', 'https://tools.test/m', from('http://tools.test/sse'))).toBe('invalid')
  })

  it('is the same server if it is another name of this machine: messages go to the origin of the channel', () => {
    const local = from('http://127.0.0.1:8765/sse')
    expect(addressOf('endpoint', 'http://localhost:8765/messages/', local)).toBe('http://127.0.0.1:8765/messages/')
    expect(addressOf('endpoint', 'http://0.0.0.0:8765/messages/', local)).toBe('http://127.0.0.1:8765/messages/')
    expect(addressOf('endpoint', 'http://localhost:8766/messages/', local)).toBe('invalid')
  })

  it('gets no secret that a redirect has removed', () => {
    expect(clue('endpoint', '/m', from('https://tools.test/sse', false))).toMatchObject({
      endpoint: { keepsSecrets: false },
    })
  })
})
