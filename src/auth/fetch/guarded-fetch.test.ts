import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createGuardedFetch, FetchFailed, type GuardedFetchOptions, readJsonObject } from './guarded-fetch.ts'

const serve = async (handler: RequestListener, host = '127.0.0.1'): Promise<string> => {
  const server = createServer(handler)
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://${host}:${(server.address() as AddressInfo).port}`
}

const fetcher = (options: GuardedFetchOptions = {}) => {
  const { fetch, close } = createGuardedFetch(options)
  onTestFinished(close)
  return fetch
}

const failure = (promise: Promise<unknown>): Promise<FetchFailed> =>
  promise.then(
    () => Promise.reject(new Error('there was a response')),
    (error: unknown) => (error instanceof FetchFailed ? error : Promise.reject(error)),
  )

/** Every name is found at the given addresses, one list after the other. */
const lookupOf = (...answers: string[][]): LookupFunction => {
  const left = [...answers]
  return (_, __, callback) => {
    const found = left.length > 1 ? left.shift() : left[0]
    ;(callback as (error: null, addresses: object[]) => void)(
      null,
      (found ?? []).map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
}

describe('a document', () => {
  test('is fetched from the configured origin, and from this machine if that is on this machine', async () => {
    const origin = await serve((request, response) => response.end(JSON.stringify({ path: request.url })))
    const fetch = fetcher()
    const response = await fetch(`${origin}/a?b`, { from: `${origin}/mcp` })
    expect([response.status, readJsonObject(response)]).toEqual([200, { path: '/a?b' }])
    expect((await fetch(`${origin}/b`, { from: 'http://127.0.0.1:1/mcp' })).status).toBe(200)
    expect((await fetch(`${origin}/b`, { from: 'http://localhost:1/mcp' })).status).toBe(200)
  })

  test('is sent with the body and the headers of a POST', async () => {
    const origin = await serve((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () =>
        response.end(JSON.stringify([request.method, request.headers['x-a'], `${Buffer.concat(chunks)}`])),
      )
    })
    const { body } = await fetcher()(origin, { method: 'POST', headers: { 'x-a': 'b' }, body: 'c=d', from: origin })
    expect(JSON.parse(`${body}`)).toEqual(['POST', 'b', 'c=d'])
  })

  test.each([
    ['<html>', undefined],
    ['[]', undefined],
    ['null', undefined],
    ['{"a":1}', { a: 1 }],
  ])('%s is read as %j', (text, value) => {
    expect(readJsonObject({ status: 200, headers: {}, body: Buffer.from(text) })).toEqual(value)
  })
})

describe('nothing is sent', () => {
  test.each([
    ['file:///etc/passwd', '"file:///etc/passwd" is no http or https URL'],
    ['nothing', '"nothing" is no http or https URL'],
    ['https://a:b@example.com/x?secret', 'https://example.com/x has credentials in it'],
    ['http://example.com/x?secret', 'http://example.com/x is not encrypted (use https:)'],
    ['https://127.0.0.1:1/x', 'https://127.0.0.1:1/x has the private address 127.0.0.1'],
    ['https://[::1]:1/x', 'https://[::1]:1/x has the private address ::1'],
    ['https://169.254.169.254/latest', 'https://169.254.169.254/latest has the private address 169.254.169.254'],
  ])('to %s if no configured URL led there', async (url, message) => {
    expect(await failure(fetcher()(url))).toMatchObject({ reason: 'refused', message })
  })

  test('to a private address if the configured server is public, whatever its name is found at', async () => {
    let requests = 0
    const origin = await serve((_, response) => {
      requests++
      response.end('{}')
    })
    const { port } = new URL(origin)
    const lookup = lookupOf(['93.184.216.34'], ['127.0.0.1'])
    const from = 'https://server.example/mcp'
    const refused = await failure(fetcher({ lookup })(`https://issuer.example:${port}/x`, { from }))
    expect(refused.message).toBe(`https://issuer.example:${port}/x has the private address 127.0.0.1`)
    const plain = await failure(fetcher({ lookup: lookupOf(['93.184.216.34']) })(`${origin}/x`, { from }))
    expect(plain.message).toBe(`${origin}/x is not encrypted (use https:)`)
    expect(requests).toBe(0)
  })

  test('to this machine after the name of a public server was moved there', async () => {
    const origin = await serve((_, response) => response.end('{}'))
    const lookup = lookupOf(['93.184.216.34'], ['127.0.0.1'])
    const fetch = fetcher({ lookup })
    const from = 'https://server.example/mcp'
    await failure(fetch(origin, { from }))
    expect((await failure(fetch(origin, { from }))).message).toContain('is not encrypted')
  })

  test('to this machine because the name of a server leads there for one lookup', async () => {
    let requests = 0
    const origin = await serve((_, response) => {
      requests++
      response.end('{}')
    })
    const fetch = fetcher({ lookup: lookupOf(['127.0.0.1']) })
    const refused = await failure(fetch(`${origin}/x`, { from: 'https://server.example/mcp' }))
    expect([refused.message, requests]).toEqual([`${origin}/x is not encrypted (use https:)`, 0])
  })

  test('to the gateway itself', async () => {
    const origin = await serve((_, response) => response.end('{}'))
    const ownPort = () => Number(new URL(origin).port)
    const refused = await failure(fetcher({ ownPort })(`${origin}/x`, { from: 'http://127.0.0.1:1/' }))
    expect(refused.message).toBe(`${origin}/x is the address of this gateway itself`)
  })

  test('unencrypted from this machine to another', async () => {
    const isPrivate = () => true
    const url = 'http://198.51.100.7:1/x'
    expect((await failure(fetcher({ isPrivate })(url, { from: 'http://127.0.0.1:1/' }))).message).toBe(
      `${url} is not encrypted (use https:)`,
    )
  })
})

describe('a server that', () => {
  test('redirects is not followed', async () => {
    const target = await serve((_, response) => response.end('{"secret":1}'))
    const origin = await serve((_, response) => response.writeHead(302, { location: target }).end())
    expect(await fetcher()(origin, { from: origin })).toMatchObject({ status: 302, headers: { location: target } })
  })

  test('hangs is given up', async () => {
    const origin = await serve(() => {})
    const failed = await failure(fetcher({ timeoutMs: 50 })(`${origin}/x?code=secret`, { from: origin }))
    expect(failed).toMatchObject({ reason: 'unreachable', message: `${origin}/x did not answer within 0.05 s` })
  })

  test('hangs in the middle of its answer is given up', async () => {
    const origin = await serve((_, response) => void response.write('{'))
    expect((await failure(fetcher({ timeoutMs: 50 })(origin, { from: origin }))).reason).toBe('unreachable')
  })

  test('sends too much is cut off', async () => {
    let sent = 0
    const origin = await serve((_, response) => {
      const more = (): void => {
        while (!response.destroyed && sent < 10_000_000 && response.write(Buffer.alloc(64 * 1024))) sent += 64 * 1024
      }
      response.on('drain', more)
      more()
    })
    expect(await failure(fetcher()(origin, { from: origin }))).toMatchObject({
      reason: 'too_large',
      message: `${origin}/ answered with more than 256 KiB`,
    })
    expect(sent).toBeLessThan(10_000_000)
  })

  test('is not there is named', async () => {
    const failed = await failure(fetcher()('http://127.0.0.1:1/x', { from: 'http://127.0.0.1:1/' }))
    expect(failed).toMatchObject({ reason: 'unreachable' })
    expect(failed.message).toMatch(/^http:\/\/127\.0\.0\.1:1\/x did not answer: .*ECONNREFUSED/)
  })
})
