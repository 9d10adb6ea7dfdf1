import { afterEach, describe, expect, it } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { callTool, closeAll, connectSmall } from '../../../test/support/processes.ts'
import {
  callerOf,
  exchangeWith,
  failure,
  legacy,
  result,
  type Script,
  scriptedServer,
  sendJson,
} from '../../../test/support/scripted-server.ts'
import { Json } from '../../wire/json/json.ts'
import { connectRemote } from '../connect-remote.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  await closeAll()
})

const CAPABILITIES = { roots: { listChanged: true }, elicitation: { form: {}, url: {} }, tasks: {} }
const BARE = { roots: { listChanged: true }, elicitation: {} }
const caller = (session: string) => callerOf({ session, capabilities: Json.of(CAPABILITIES) })

const connect = async (script: Script) => {
  const server = await scriptedServer(script)
  const { log, lines } = createTestLog()
  const remote = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 } as const
  const upstream = connectRemote({ name: 'far', ...remote }, { log })
  closing.push(
    () => server.close(),
    () => upstream.close(),
  )
  return { server, upstream, lines, offers: () => server.of('initialize').map(({ body }) => body.params?.capabilities) }
}

const answerOk: Script = ({ body }, response) => sendJson(response, result(body.id, { ok: true }))

/** A server with a strict parser, as Java SDK 0.17 has: a member it does not know fails the handshake. */
const strict =
  (refuse: Script, isStrict: (text: string) => boolean): Script =>
  (arrived, response) => {
    const { method, params } = arrived.body
    if (method === 'initialize' && isStrict(JSON.stringify(params?.capabilities))) refuse(arrived, response)
    else legacyOk(arrived, response)
  }
const legacyOk = legacy(answerOk, { sessions: [] })
const knowsForm = (text: string) => /form|tasks/.test(text)
const TEXT = 'Unrecognized field "form"'
const refusing: Script = ({ body }, response) => sendJson(response, failure(body.id, -32603, TEXT))

describe('a server that refuses a handshake because of a capability member', () => {
  it.each<[string, Script]>([
    ['a JSON-RPC error', refusing],
    ['HTTP 400', ({ body }, response) => sendJson(response, failure(body.id, -32602, TEXT), 400)],
    ['HTTP 500 without a word', (_, response) => void response.writeHead(500).end()],
  ])('is asked once more with bare members, and from then on only so: %s', async (_, refuse) => {
    const { upstream, offers, lines } = await connect(strict(refuse, knowsForm))
    const peer = await upstream.open(caller('a'))
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
    expect(offers()).toEqual([CAPABILITIES, BARE])
    await upstream.open(caller('b'))
    expect(offers()).toEqual([CAPABILITIES, BARE, BARE])
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  it('that refuses the bare members too is reported with its first refusal, and logged once', async () => {
    const { upstream, offers, lines } = await connect(refusing)
    for (const session of ['a', 'b'])
      await expect(upstream.open(caller(session))).rejects.toThrow(`Server "far" refused initialize: ${TEXT}`)
    expect(offers()).toHaveLength(4)
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  it('is not asked twice if there is no capability to leave out', async () => {
    const { upstream, offers } = await connect(refusing)
    await expect(upstream.open(callerOf({ session: 'a' }))).rejects.toThrow(TEXT)
    expect(offers()).toHaveLength(1)
  })

  it('over stdio is asked once more in the same process', async () => {
    const { open, upstream } = connectSmall({ era: 'legacy', strict: true }, { server: { share: 'session' } })
    for (const session of ['a', 'b']) {
      const peer = await open(caller(session))
      expect(await callTool(peer, 'echo', { text: 'hello' })).toBe('hello')
    }
    expect(upstream.status()).toMatchObject({ crashes: 0, processes: { length: 2 } })
    const refusing = connectSmall({ era: 'legacy', initialize: 'refuse' })
    await expect(refusing.open(caller('a'))).rejects.toThrow('refused initialize: no clients today')
  })
})

describe('a server that answered an old revision', () => {
  it('is offered only the capabilities of that revision from then on', async () => {
    const { upstream, offers } = await connect(legacy(answerOk, { sessions: [], version: '2025-06-18' }))
    await upstream.open(caller('a'))
    await upstream.open(caller('b'))
    expect(offers()).toEqual([CAPABILITIES, BARE])
  })
})
