import { afterEach, expect, test } from 'vitest'
import { META } from '../../../src/protocol/meta.ts'
import { modern, send } from '../../support/raw.ts'
import {
  legacy,
  openStream,
  request,
  result,
  type Script,
  scriptedServer,
  sendJson,
} from '../../support/scripted-server.ts'
import { type Created, startGuarded } from './guarded.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const TOOLS = { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }
const EVERY_SESSION = Array.from({ length: 1000 }, (_, i) => `s${i}`)

/** A gateway before a legacy server, and two principals. */
const start = async (script: Script, limits: Parameters<typeof startGuarded>[0] = {}) => {
  const server = await scriptedServer(legacy(script, { sessions: EVERY_SESSION }))
  const remote = { kind: 'remote', url: server.url, type: 'http', headers: {}, era: 'legacy', timeoutMs: 5000 } as const
  const guarded = await startGuarded({ server: remote, ...limits })
  closing.push(
    () => server.close(),
    () => guarded.close(),
  )
  const [ana, ben] = [await guarded.create({ principal: 'ana' }), await guarded.create({ principal: 'ben' })]
  const call = async (who: Created, affinity: string, params: Record<string, unknown> = {}) => {
    const capabilities = { elicitation: { form: {} } }
    const asked = modern(
      1,
      'tools/call',
      { name: 'echo', ...params },
      { capabilities, meta: { [META.affinity]: affinity } },
    )
    return send(guarded.url, { ...asked, headers: { ...asked.headers, ...who.headers } })
  }
  return { server, ana, ben, call }
}

const answerAll: Script = ({ body }, response) => {
  if (body.id === undefined) return void response.writeHead(202).end()
  sendJson(response, result(body.id, body.method === 'tools/list' ? TOOLS : { content: [] }))
}

test('quick calls with many affinities lock no other call out: our own standing exchange is not in use', async () => {
  const { ana, ben, call } = await start(answerAll, { limits: { principalUpstreamSessions: 4 } })
  for (let i = 0; i < 4; i++) expect((await call(ana, `a${i}`)).status).toBe(200)
  const begun = Date.now()
  expect((await call(ben, 'b')).json.result).toBeDefined()
  expect((await call(ana, 'one more')).json.result).toBeDefined()
  expect(Date.now() - begun).toBeLessThan(4000) // it waited for 5 s, in vain
})

/** Asks a question on the stream of every call, and answers the call once that is answered. */
const askFirst = (): Script => {
  const streams = new Map<unknown, () => void>()
  return (arrived, response) => {
    const { body } = arrived
    if (body.method === undefined && body.id !== undefined) {
      response.writeHead(202).end()
      return streams.get(body.id)?.()
    }
    if (body.method !== 'tools/call') return answerAll(arrived, response)
    const stream = openStream(response)
    const id = `q${streams.size}`
    streams.set(id, () => {
      stream.event(result(body.id, { content: [{ type: 'text', text: 'done' }] }))
      stream.end()
    })
    stream.event(
      request(id, 'elicitation/create', { message: '?', requestedSchema: { type: 'object', properties: {} } }),
    )
  }
}

test('parked calls of one principal cost another nothing; the oldest of its own is answered like an expired one', async () => {
  const { ana, ben, call } = await start(askFirst(), { limits: { principalParkedCalls: 3 } })
  const stateOf = async (who: Created, affinity: string) => {
    const { json } = await call(who, affinity)
    expect(json.result).toMatchObject({ resultType: 'input_required' })
    const { requestState, inputRequests } = json.result as { requestState: string; inputRequests: object }
    const [key = ''] = Object.keys(inputRequests)
    return { requestState, inputResponses: { [key]: { action: 'accept', content: {} } } }
  }
  const kept = await stateOf(ben, 'b')
  const states = []
  for (let i = 0; i < 6; i++) states.push(await stateOf(ana, `a${i}`))
  const oldest = await call(ana, 'a0', states[0])
  expect(oldest.json.error).toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } })
  expect((await call(ana, 'a5', states[5])).json.result).toMatchObject({ content: [{ text: 'done' }] })
  expect((await call(ben, 'b', kept)).json.result).toMatchObject({ content: [{ text: 'done' }] })
})
