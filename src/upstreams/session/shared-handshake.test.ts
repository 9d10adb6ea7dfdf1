import { expect, onTestFinished, test } from 'vitest'
import { answerWith } from '../../../test/support/remote-upstream.ts'
import { legacy, type Script, scriptedServer } from '../../../test/support/scripted-server.ts'
import { joinUpstream, sessionCaller } from '../../../test/support/upstream-replica.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'

const answerOk = answerWith({ ok: true })

const connectTo = async (script: Script) => {
  const server = await scriptedServer(script)
  onTestFinished(server.close)
  return { server, ...joinUpstream(new MemoryCluster(), server.url, { config: { era: 'legacy' } }) }
}
const [ANNA, BEN] = [sessionCaller('anna'), sessionCaller('ben')]

test('sessions share one answer of their server, and not its session id', async () => {
  const { server, call } = await connectTo(legacy(answerOk))
  const first = await call(ANNA, 'server/discover')
  expect(await call(BEN, 'server/discover')).toEqual(first)
  await call(ANNA)
  await call(BEN)
  expect(server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's2'])
})

test('a server that answers something else is believed', async () => {
  const answers = [legacy(answerOk), legacy(answerOk, { capabilities: { prompts: {} }, sessions: ['other'] })]
  let latest = answers[0] as Script
  const { call } = await connectTo((arrived, response) => {
    if (arrived.body?.method === 'initialize') latest = answers.shift() ?? latest
    latest(arrived, response)
  })
  const [first, second] = [await call(ANNA, 'server/discover'), await call(BEN, 'server/discover')]
  expect(first).toMatchObject({ capabilities: { tools: { listChanged: true } } })
  expect(second).toMatchObject({ capabilities: { prompts: {} } })
})
