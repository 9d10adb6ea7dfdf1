import { afterAll, afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest'
import { createGuardedFetch, type FetchResponse } from '../fetch/guarded-fetch.ts'
import { ClientDocuments, isDocumentUrl } from './client-documents.ts'

const URL_OF_CLIENT = 'https://client.example/oauth/metadata.json'
const DOCUMENT = { client_id: URL_OF_CLIENT, client_name: 'Client', redirect_uris: ['http://127.0.0.1:*/cb'] }

let fetched: string[]
let answer: (url: string) => FetchResponse | Promise<FetchResponse>
let documents: ClientDocuments
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] })
  fetched = []
  answer = () => response(DOCUMENT)
  documents = new ClientDocuments(async url => {
    fetched.push(url)
    return answer(url)
  })
})
afterEach(() => {
  vi.useRealTimers()
})

const response = (document: unknown, headers: Record<string, string> = {}, status = 200): FetchResponse => ({
  status,
  headers,
  body: Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)),
})
const wait = (ms: number): void => void vi.setSystemTime(Date.now() + ms)
const find = (url = URL_OF_CLIENT, address = '192.0.2.1') => documents.find(url, address)

describe('the URL of a document', () => {
  test.each([
    URL_OF_CLIENT,
    'https://client.example:8443/a?b=c',
    'https://claude.ai/oauth/claude-code-client-metadata',
  ])('%s', url => expect(isDocumentUrl(url)).toBe(true))
  test.each([
    'http://client.example/a',
    'https://client.example',
    'https://client.example/',
    'https://client.example/a#b',
    'https://user@client.example/a',
    'https://client.example/a/../b',
    'https://CLIENT.example/a',
    'ftp://client.example/a',
    `https://client.example/${'a'.repeat(600)}`,
    'client-0123',
  ])('is not %s', url => expect(isDocumentUrl(url)).toBe(false))
})

it('a client is what its document says', async () => {
  expect(await find()).toEqual({
    client: { id: URL_OF_CLIENT, source: 'document', name: 'Client', redirectUris: ['http://127.0.0.1/cb'] },
  })
})

it.each([
  ['another client_id', { ...DOCUMENT, client_id: `${URL_OF_CLIENT}2` }, 'is not that URL'],
  ['no client_id', { redirect_uris: DOCUMENT.redirect_uris }, 'is not that URL'],
  ['a secret', { ...DOCUMENT, token_endpoint_auth_method: 'client_secret_basic' }, 'wants a secret'],
  ['no redirect URI', { client_id: URL_OF_CLIENT }, 'redirect_uris'],
  ['a bad redirect URI', { ...DOCUMENT, redirect_uris: ['javascript:alert(1)'] }, 'scheme'],
  ['a page', '<html>', 'no JSON object'],
  ['a list', [], 'no JSON object'],
])('a document with %s is rejected', async (_what, document, problem) => {
  answer = () => response(document)
  expect(await find()).toEqual({ problem: expect.stringContaining(problem) })
})

it.each([301, 302, 404, 500])('status %d is no document', async status => {
  answer = () => response(DOCUMENT, { location: 'http://169.254.169.254/' }, status)
  expect(await find()).toEqual({ problem: expect.stringContaining(`status ${status}`) })
  expect(fetched).toEqual([URL_OF_CLIENT])
})

it('a document is fetched once for requests at the same time, and then kept for ten minutes, or as long as it says', async () => {
  await Promise.all([find(), find(), find()])
  wait(10 * 60_000 - 1)
  await find()
  expect(fetched).toHaveLength(1)
  wait(1)
  answer = () => response(DOCUMENT, { 'cache-control': 'public, max-age=3600' })
  await find()
  wait(3599_000)
  await find()
  expect(fetched).toHaveLength(2)
})

it('a failure is kept for 30 seconds', async () => {
  answer = () => response('x', {}, 500)
  await find()
  wait(29_000)
  await find()
  expect(fetched).toHaveLength(1)
  wait(1000)
  answer = () => response(DOCUMENT)
  expect(await find()).toHaveProperty('client')
})

it('one address may cause 60 fetches in a minute', async () => {
  for (let count = 0; count < 100; count++) await find(`https://client.example/${count}`)
  expect(fetched).toHaveLength(60)
  expect(await find('https://client.example/a')).toEqual({ problem: expect.stringContaining('try again') })
  await find('https://client.example/b', '192.0.2.2')
  expect(fetched).toHaveLength(61)
})

describe('with the real fetch', () => {
  const { fetch, close } = createGuardedFetch({ timeoutMs: 2000 })
  afterAll(close)

  test.each([
    'https://127.0.0.1:1/client.json',
    'https://[::1]:1/client.json',
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/client.json',
    'https://192.168.0.1/client.json',
    'https://localhost:1/client.json',
    'https://[::ffff:127.0.0.1]:1/client.json',
    'https://0.0.0.0/client.json',
  ])('%s is not fetched: its address is private', async url => {
    vi.useRealTimers()
    expect(await new ClientDocuments(fetch).find(url, undefined)).toEqual({
      problem: expect.stringContaining('private address'),
    })
  })
})
