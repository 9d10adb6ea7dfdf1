import { expect, test } from 'vitest'
import { modern, send } from '../support/raw.ts'
import { clientOf, inCell, serverOf } from './cells.ts'
import type { MatrixServer } from './server.ts'
import { sessionServer } from './session-server.ts'

const M = clientOf('2026-07-28')
const ON_GET = {
  name: '2025-11-25 GET',
  revision: '2025-11-25',
  start: () => sessionServer('2025-11-25', 'GET'),
} as const
const KINDS = [
  ['stdio', serverOf('2025-06-18', 'stdio')],
  ['http-sse', serverOf('2025-11-25', 'http-sse')],
  ['a GET stream', ON_GET],
] as const
const FORM = { requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }

/** Asks whom it is for, and says what it was told. */
const asksWho = (server: MatrixServer): void => {
  server.tools.set('ask', async ({ arguments: { who }, ask }) => ({
    content: [
      {
        type: 'text',
        text: JSON.stringify([who, await ask('n', 'elicitation/create', { ...FORM, message: String(who) })]),
      },
    ],
  }))
  server.tools.set('plain', () => ({ content: [] }))
}

let id = 0
const call = async (url: string, who: string, more: object = {}, capabilities: object = { elicitation: {} }) => {
  const params = { name: 'ask', arguments: { who }, ...more }
  const { json } = await send(url, modern(++id, 'tools/call', params, { capabilities }))
  return json
}
type Reply = Awaited<ReturnType<typeof call>>

const answer = (url: string, who: string, { result }: Reply): Promise<Reply> => {
  const [key = ''] = Object.keys(result?.inputRequests as object)
  const accepted = { action: 'accept', content: { name: who } }
  return call(url, who, { requestState: result?.requestState, inputResponses: { [key]: accepted } })
}
const textOf = ({ result }: Reply) => (result?.content as { text: string }[] | undefined)?.[0]?.text
const told = (who: string) => JSON.stringify([who, { action: 'accept', content: { name: who } }])

/** Only by its first question does a server show that it asks on the GET stream. */
const showManner = async (kind: (typeof KINDS)[number][1], server: MatrixServer, url: string): Promise<void> => {
  if (kind !== ON_GET) return
  const other = { elicitation: {}, sampling: {} } // and so another session
  const first = await call(url, 'first', {}, other)
  const [key = ''] = Object.keys(first.result?.inputRequests as object)
  const inputResponses = { [key]: { action: 'accept', content: { name: 'first' } } }
  expect(textOf(await call(url, 'first', { requestState: first.result?.requestState, inputResponses }, other))).toBe(
    told('first'),
  )
  server.arrivals.length = 0
}

// At the same time: most of each is waiting.
test.concurrent.each(KINDS)(
  'over %s a call whose person is slow neither blocks nor ends the next',
  async (_name, kind) => {
    await inCell(M, kind, { prepare: asksWho }, async ({ server, url }) => {
      await showManner(kind, server, url)
      const one = await call(url, 'one')
      expect(one.result?.resultType).toBe('input_required')
      const two = await call(url, 'two')
      expect(two.result).toMatchObject({ resultType: 'input_required', inputRequests: expect.anything() })
      expect(server.of('initialize')).toHaveLength(2)
      expect(textOf(await answer(url, 'two', two))).toBe(told('two'))
      expect(textOf(await answer(url, 'one', one))).toBe(told('one'))
      expect(server.of('tools/call')).toHaveLength(2)
      expect(server.of('notifications/cancelled')).toEqual([])
    })
  },
)

test.concurrent.each(KINDS)('over %s the first session is used again as soon as it is free', async (_name, kind) => {
  await inCell(M, kind, { prepare: asksWho }, async ({ server, url }) => {
    await showManner(kind, server, url)
    const one = await call(url, 'one')
    const two = await call(url, 'two')
    await answer(url, 'one', one)
    const three = await call(url, 'three')
    expect(textOf(await answer(url, 'three', three))).toBe(told('three'))
    expect(textOf(await answer(url, 'two', two))).toBe(told('two'))
    expect(server.of('initialize')).toHaveLength(2)
    const processes = server.of('tools/call').map(({ process }) => process)
    if (kind.name.includes('stdio')) expect(processes[2]).toBe(processes[0])
  })
})

test.concurrent.each(KINDS)(
  'over %s four people may think at once; then the first of them has to begin again',
  async (_name, kind) => {
    await inCell(M, kind, { prepare: asksWho }, async ({ server, url }) => {
      await showManner(kind, server, url)
      const names = ['one', 'two', 'three', 'four', 'five']
      const asked: Reply[] = []
      for (const name of names) asked.push(await call(url, name))
      expect(asked.map(({ result }) => result?.resultType)).toEqual(names.map(() => 'input_required'))
      expect(server.of('initialize')).toHaveLength(4)
      const outcomes = await Promise.all(names.map((name, at) => answer(url, name, asked[at] as Reply)))
      expect(outcomes[0]?.error).toMatchObject({ code: -32602, data: { reason: 'invalid_request_state' } })
      expect(outcomes.slice(1).map(textOf)).toEqual(names.slice(1).map(told))
    })
  },
)
