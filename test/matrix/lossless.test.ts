import { afterEach, expect, test } from 'vitest'
import { META } from '../../src/protocol/meta.ts'
import { startTestGateway } from '../support/gateway.ts'
import { modern, openSession, send } from '../support/raw.ts'
import { type Arrived, type ScriptedServer, scriptedServer } from '../support/scripted-server.ts'

// What a parse and a stringify would change, each in the exact spelling that must arrive.
const ARGUMENTS = '{"n":12345678901234567890,"x":1.0,"e":1E+2,"z":-0,"deep":{"\\u0061":[1.10,{"__proto__":{"p":1}}]}}'
const RESULT_MEMBERS =
  '"content":[{"type":"text","text":"caf\\u00e9 \\ud83d\\ude00 é","acme":1.50}],"structuredContent":{"id":9007199254740993,"f":2.0},' +
  '"unknown":{"kept": [ 1.0 , 2 ]}'

let server: ScriptedServer
let gateway: { url: string; close(): Promise<void> }

const start = async (script: (arrived: Arrived) => string | undefined, headers: Record<string, string> = {}) => {
  server = await scriptedServer((arrived, response) => {
    const body = script(arrived)
    response.writeHead(body === undefined ? (arrived.method === 'POST' ? 202 : 405) : 200, {
      'content-type': 'application/json',
      ...headers,
    })
    response.end(body)
  })
  gateway = await startTestGateway(server.url)
}

afterEach(async () => {
  await gateway.close()
  await server.close()
})

const reply = (arrived: Arrived, result: string) =>
  `{ "jsonrpc": "2.0",\n "result": ${result}, "id": ${arrived.body.id} }`
const DISCOVERED = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`

test('2026-07-28 to 2026-07-28: numbers, escapes and unknown members keep their spelling both ways', async () => {
  await start(arrived =>
    reply(
      arrived,
      arrived.body.method === 'server/discover'
        ? DISCOVERED
        : `{${RESULT_MEMBERS},"resultType":"complete","_meta":{"acme/n":1.0}}`,
    ),
  )
  const { headers, body } = modern('id-1', 'tools/call', { name: 'echo' }, { meta: { 'acme/trace': 1 } })
  const text = JSON.stringify(body).replace('"name":"echo"', `"name":"echo","arguments":${ARGUMENTS},"later":3.0`)
  const got = await send(gateway.url, { headers, body: text })

  const arrived = await server.arrived('tools/call')
  expect(arrived.text).toContain(`"arguments":${ARGUMENTS},"later":3.0`)
  expect(arrived.body.params?._meta).toEqual({ ...(body.params._meta as object) })
  expect(got.text).toContain(`{${RESULT_MEMBERS},"resultType":"complete","_meta":{"acme/n":1.0}}`)
  expect(got.text).toContain('"id":"id-1"')
})

test('2025-11-25 to 2025-11-25: the same, and the session keeps the client’s own words', async () => {
  await start(
    arrived => {
      if (arrived.method !== 'POST' || arrived.body.id === undefined) return undefined
      if (arrived.body.method === 'server/discover')
        return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}`
      if (arrived.body.method === 'initialize')
        return reply(
          arrived,
          '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"acme":{"v":1.0}},"serverInfo":{"name":"s","version":"1","x":1.0},"instructions":"i"}',
        )
      return reply(arrived, `{${RESULT_MEMBERS}}`)
    },
    { 'mcp-session-id': 's1' },
  )
  const session = await openSession(gateway.url, '2025-11-25', { roots: { listChanged: true }, experimental: { n: 1 } })
  expect(session.result).toMatchObject({
    capabilities: { acme: { v: 1 } },
    serverInfo: { name: 's', version: '1', x: 1 },
    instructions: 'i',
  })
  const text = `{"jsonrpc":"2.0","id":18446744073709551615,"method":"tools/call","params":{"name":"echo","arguments":${ARGUMENTS},"later":3.0}}`
  const got = await send(gateway.url, { headers: session.headers, body: text })

  const arrived = await server.arrived('tools/call')
  expect(arrived.text).toContain(`"params":{"name":"echo","arguments":${ARGUMENTS},"later":3.0}`)
  expect(got.text).toContain(`{${RESULT_MEMBERS}}`)
  expect(got.text).toContain('"id":18446744073709551615')
  const openings = server.of('initialize').map(({ body }) => body.params)
  expect(openings).toContainEqual({
    protocolVersion: '2025-11-25',
    capabilities: { roots: { listChanged: true }, experimental: { n: 1 } },
    clientInfo: { name: 'test', version: '1' },
  })
})

test('an unknown method and its error data pass through, only the envelope differs', async () => {
  await start(arrived => {
    if (arrived.body.method === 'server/discover') return reply(arrived, DISCOVERED)
    return `{"jsonrpc":"2.0","id":${arrived.body.id},"error":{"code":-31999,"message":"m","data":{"n":1.0,"more":[12345678901234567890]}}}`
  })
  const { headers, body } = modern(1, 'acme/do', { inputResponses: { a: 1 }, requestState: 'mine' })
  const got = await send(gateway.url, { headers, body })
  expect((await server.arrived('acme/do')).body.params).toEqual(body.params)
  expect(got.text).toContain('"error":{"code":-31999,"message":"m","data":{"n":1.0,"more":[12345678901234567890]}}')
  expect(Object.keys(body.params._meta as object)).toContain(META.protocolVersion)
})
