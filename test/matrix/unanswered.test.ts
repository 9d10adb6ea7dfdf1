import { afterEach, expect, test, vi } from 'vitest'
import { modern, openStream, send } from '../support/raw.ts'
import { clientOf, gatewayBefore, inCell, serverOf } from './cells.ts'
import type { MatrixServer } from './server.ts'

const M = clientOf('2026-07-28')
const FORM = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } }
const ask = (id: number, who: string, more: Record<string, unknown> = {}) =>
  modern(id, 'tools/call', { name: 'ask', arguments: { who }, ...more }, { capabilities: { elicitation: {} } })
const answerFor = (who: string) => ({ action: 'accept', content: { who } })

const asksWho = (server: MatrixServer): void => {
  server.tools.set('ask', async call => {
    const { who } = call.arguments
    const answer = await call.ask('n', 'elicitation/create', { ...FORM, message: String(who) })
    if (answer.action === 'cancel') return new Promise(() => {}) // one that does not take the hint
    return { content: [{ type: 'text', text: JSON.stringify([who, answer.content]) }] }
  })
}

/** Lets time fly, at a speed the machine can follow, until something has happened. */
const hasten = async <T>(happens: Promise<T>): Promise<T> => {
  let isOver = false
  const watched = happens.finally(() => {
    isOver = true
  })
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(200)
    await new Promise(resolve => setImmediate(resolve))
  }
  return watched
}

afterEach(() => vi.useRealTimers())

test.each([
  ['tells calls apart', serverOf('2025-11-25'), 0],
  ['does not tell calls apart', serverOf('2025-11-25', 'http-sse'), 5],
])(
  'five questions in a row left unanswered by one user do not keep the sixth waiting (a server that %s)',
  async (_name, kind, givingWay) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], shouldAdvanceTime: true })
    await inCell(M, kind, {}, async ({ server, url }) => {
      asksWho(server)
      const states: string[] = []
      for (const who of ['1', '2', '3', '4', '5', '6']) {
        const { result, error } = (await hasten(send(url, ask(1, who)))).json
        expect([who, error, result?.resultType]).toEqual([who, undefined, 'input_required'])
        const [question] = Object.values(result?.inputRequests as Record<string, { params: { message: string } }>)
        expect(question?.params.message).toBe(who)
        states.push(String(result?.requestState))
      }
      const retry = async (who: string) => {
        const more = { requestState: states[Number(who) - 1], inputResponses: { q1: answerFor(who) } }
        return (await hasten(send(url, ask(2, who, more)))).json
      }
      expect((await retry('6')).result).toMatchObject({ content: [{ text: JSON.stringify(['6', { who: '6' }]) }] })
      expect(
        server.of('tools/call').map(({ message }) => (message.params?.arguments as { who: string } | undefined)?.who),
      ).toEqual(['1', '2', '3', '4', '5', '6'])
      // Whoever had to give way is refused and was cancelled at the server; everybody else is still served.
      const refused: string[] = []
      for (const who of ['1', '2', '3', '4', '5']) {
        const { result, error } = await retry(who)
        if (result) expect(result).toMatchObject({ content: [{ text: JSON.stringify([who, { who }]) }] })
        else {
          expect(error).toMatchObject({ code: -32602 })
          refused.push(who)
        }
      }
      expect(refused).toEqual(givingWay === 0 ? [] : ['1', '2', '3', '4', '5'].slice(0, refused.length))
      expect(refused.length).toBeLessThanOrEqual(givingWay)
      if (refused.length > 0) await hasten(server.arrived('notifications/cancelled', refused.length))
      const ids = server.of('tools/call').map(({ message }) => message.id)
      const cancelled = server.of('notifications/cancelled').map(({ message }) => message.params?.requestId)
      expect(cancelled).toHaveLength(refused.length)
      for (const id of cancelled) expect(ids).toContain(id)
    })
  },
)

test.each([
  ['streamable', serverOf('2025-11-25')],
  ['http-sse', serverOf('2025-11-25', 'http-sse')],
  ['stdio', serverOf('2025-06-18', 'stdio')],
])('a server that never finishes after it was answered is given up, and told so (%s)', async (_name, kind) => {
  const server = await kind.start()
  const gateway = await gatewayBefore({ ...server.config, timeoutMs: 300 } as typeof server.config)
  server.tools.set('ask', async call => {
    await call.ask('n', 'elicitation/create', FORM)
    return new Promise(() => {})
  })
  const first = (await send(gateway.url(), ask(1, 'a'))).json.result
  const more = { requestState: first?.requestState, inputResponses: { q1: answerFor('a') } }
  const { error } = (await send(gateway.url(), ask(2, 'a', more))).json
  expect(error).toMatchObject({ code: -32603, data: { reason: 'upstream_timeout', upstream: 'server' } })
  const { message } = await server.arrived('notifications/cancelled')
  expect(message.params?.requestId).toBe(server.of('tools/call')[0]?.message.id)
  await gateway.close()
  await server.close()
})

test('a client that leaves a call that never finishes takes it along, also after it was asked', async () => {
  await inCell(M, serverOf('2025-11-25'), {}, async ({ server, url }) => {
    server.tools.set('ask', async call => {
      await call.ask('n', 'elicitation/create', FORM)
      call.progress(1)
      return new Promise(() => {})
    })
    const begin = modern(
      1,
      'tools/call',
      { name: 'ask' },
      { capabilities: { elicitation: {} }, meta: { progressToken: 1 } },
    )
    const first = (await send(url, begin)).json.result
    const { headers, body } = modern(
      2,
      'tools/call',
      { name: 'ask', requestState: first?.requestState, inputResponses: { q1: answerFor('a') } },
      { capabilities: { elicitation: {} }, meta: { progressToken: 2 } },
    )
    const stream = await openStream(url, { headers, body })
    expect((await stream.next())?.json.params).toMatchObject({ progressToken: 2, progress: 1 })
    stream.close()
    const { message } = await server.arrived('notifications/cancelled')
    expect(message.params?.requestId).toBe(server.of('tools/call')[0]?.message.id)
    expect((await send(url, { headers, body })).json.error?.code).toBe(-32602)
  })
})
