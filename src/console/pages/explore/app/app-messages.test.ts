import { expect, test } from 'vitest'
import { type AppCall, appHtmlOf, appUriOf, stepFor } from './app-messages.ts'

const CALL: AppCall = { version: '1', theme: 'dark', args: { city: 'Bern' }, result: { content: [] } }
const request = (method: unknown, params?: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })

test('an app is introduced to the console, and then gets its call', () => {
  expect(stepFor(request('ui/initialize', { protocolVersion: 'x' }), CALL)).toMatchObject({
    messages: [{ id: 1, result: { protocolVersion: 'x', hostContext: { theme: 'dark' } } }],
  })
  expect(stepFor({ jsonrpc: '2.0', method: 'ui/notifications/initialized' }, CALL)).toMatchObject({
    messages: [
      { method: 'ui/notifications/tool-input', params: { arguments: { city: 'Bern' } } },
      { method: 'ui/notifications/tool-result', params: { content: [] } },
    ],
  })
})

test.each(['tools/call', 'resources/read'])('%s is a question to the user', method => {
  expect(stepFor(request(method, { name: 'x' }), CALL)).toEqual({
    kind: 'ask',
    request: { id: 1, method, params: { name: 'x' } },
  })
})

test.each(['ui/open-link', 'ui/message', 'initialize', 'tools/list', '__proto__', 'x'.repeat(100_000)])(
  'another method is not offered: %.20s',
  method => {
    const step = stepFor(request(method), CALL)
    expect(step).toMatchObject({ kind: 'send', messages: [{ id: 1, error: { code: -32601 } }] })
    expect(JSON.stringify(step).length).toBeLessThan(400)
  },
)

test.each([
  [undefined],
  [null],
  ['x'],
  [[]],
  [{}],
  [{ jsonrpc: '2.0' }],
  [{ jsonrpc: '2.0', method: 3 }],
  [{ jsonrpc: '2.0', method: 'other' }],
  [{ jsonrpc: '2.0', id: 1, result: {} }],
])('%j is ignored', message => {
  expect(stepFor(message, CALL)).toEqual({ kind: 'none' })
})

test.each([
  [300.4, 300],
  [-5, 80],
  [1e9, 900],
  [Number.NaN, 80],
  [Number.POSITIVE_INFINITY, 900],
])('a height of %d becomes %d', (height, used) => {
  const message = { jsonrpc: '2.0', method: 'ui/notifications/size-changed', params: { height } }
  expect(stepFor(message, CALL)).toEqual({ kind: 'resize', height: used })
})

test('the app of a tool is a ui:// resource, in both forms', () => {
  expect(appUriOf({ _meta: { ui: { resourceUri: 'ui://a/b' } } })).toBe('ui://a/b')
  expect(appUriOf({ _meta: { 'ui/resourceUri': 'ui://a/b' } })).toBe('ui://a/b')
  for (const uri of ['https://a/b', 'javascript:1', 3, undefined])
    expect(appUriOf({ _meta: { ui: { resourceUri: uri } } })).toBeUndefined()
  expect(appUriOf({})).toBeUndefined()
})

test('only HTML of at most 5 MiB is an app', () => {
  const contents = (mimeType: string, more: object) => ({ contents: [{ uri: 'ui://a', mimeType, ...more }] })
  expect(appHtmlOf(contents('text/html;profile=mcp-app', { text: '<p>ü' }))).toBe('<p>ü')
  expect(appHtmlOf(contents('text/html', { blob: 'PHA+w7w=' }))).toBe('<p>ü')
  expect(appHtmlOf(contents('text/html', { blob: '***' }))).toBeUndefined()
  expect(appHtmlOf(contents('text/plain', { text: '<p>' }))).toBeUndefined()
  expect(appHtmlOf(contents('text/html', { text: 'x'.repeat(6 * 2 ** 20) }))).toBeUndefined()
  expect(appHtmlOf({})).toBeUndefined()
})
