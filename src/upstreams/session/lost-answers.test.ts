import { afterEach, describe, expect, it, vi } from 'vitest'
import { channelServer, connectTo } from '../../../test/support/channel-server.ts'
import {
  type Arrived,
  callerOf,
  exchangeWith,
  legacy,
  openStream,
  request,
  result,
  type Script,
  type ScriptedServer,
  scriptedServer,
} from '../../../test/support/scripted-server.ts'
import { type Log, SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { SendOutcome } from './gateway-request.ts'
import { SendQueue } from './send-queue.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
})

const caller = callerOf({
  revision: '2025-11-25',
  session: 'client-1',
  capabilities: Json.of({ elicitation: {} }),
})
const ASKED = request('q-1', 'elicitation/create', { message: '?' })
const isAnswer = ({ body }: Arrived): boolean => body.id === 'q-1' && body.method === undefined

/** What `server` gets in place of a response to an answer; undefined: it takes the answer. */
type Refusal = ((response: Arrived['response'], attempt: number) => void) | undefined

/** A call whose question has reached the client, at a server of that transport. */
interface AskedCall {
  readonly server: ScriptedServer
  readonly call: ReturnType<typeof exchangeWith>
  readonly callAgain: () => ReturnType<typeof exchangeWith>
  /** The server has got an answer that it can use. */
  finish(): void
  readonly failures: string[] // messages that did not reach the server
}

const logTo = (failures: string[]): Log => ({
  ...SILENT,
  debug: (fields: object) => void ('reason' in fields && failures.push(String(fields.reason))),
})

const askOverStreamable = async (refusal: Refusal): Promise<AskedCall> => {
  let attempt = 0
  const script: Script = (arrived, response) => {
    if (isAnswer(arrived) && refusal) return refusal(response, ++attempt)
    if (arrived.body.method !== 'tools/call') return void response.writeHead(202).end()
    openStream(response).event(ASKED)
  }
  const server = await scriptedServer(legacy(script))
  const failures: string[] = []
  const upstream = connectTo(server, closing, { era: 'legacy' }, { log: logTo(failures) })
  const peer = await upstream.open(caller)
  const call = exchangeWith(peer, 'tools/call')
  const { body, response } = await server.arrived('tools/call')
  const finish = (): void => void response.end(`data: ${JSON.stringify(result(body.id, { done: true }))}\n\n`)
  return { server, call, callAgain: () => exchangeWith(peer, 'tools/call'), finish, failures }
}

const askOverChannel = async (refusal: Refusal): Promise<AskedCall> => {
  let attempt = 0
  const server = await channelServer((arrived, channel, response) => {
    if (isAnswer(arrived) && refusal) return refusal(response, ++attempt)
    response.writeHead(202).end()
    if (arrived.body.method === 'tools/call') channel.event(ASKED)
  })
  const failures: string[] = []
  const upstream = connectTo(server, closing, { type: 'sse' }, { log: logTo(failures), endpointMs: 300 })
  const peer = await upstream.open(caller)
  const call = exchangeWith(peer, 'tools/call')
  const { body } = await server.arrived('tools/call')
  const finish = (): void => void server.streams.at(-1)?.event(result(body.id, { done: true }))
  return { server, call, callAgain: () => exchangeWith(peer, 'tools/call'), finish, failures }
}

const accept = async ({ call }: AskedCall): Promise<void> => {
  const question = await call.question()
  question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: {} }) })
}

const answersAt = (server: ScriptedServer): number => server.arrivals.filter(isAnswer).length

describe.each([
  ['Streamable HTTP', askOverStreamable],
  ['HTTP+SSE', askOverChannel],
])('an answer to a server over %s', (_, ask) => {
  it.each([408, 429, 503])('is sent again where the server was not available for it (%i)', async status => {
    const asked = await ask((response, attempt) => void response.writeHead(attempt < 3 ? status : 202).end())
    await accept(asked)
    await expect.poll(() => answersAt(asked.server), { timeout: 4000 }).toBe(3)
    asked.finish()
    expect(await asked.call.result()).toEqual({ done: true })
    expect(answersAt(asked.server)).toBe(3)
  })

  it('is sent again where the server took no connection', async () => {
    const asked = await ask(undefined)
    asked.server.refuseConnections()
    await accept(asked)
    await expect.poll(() => asked.failures.length, { timeout: 4000 }).toBeGreaterThan(0)
    expect(answersAt(asked.server)).toBe(0)
    await asked.server.reopen()
    await expect.poll(() => answersAt(asked.server), { timeout: 4000 }).toBe(1)
    asked.finish()
    expect(await asked.call.result()).toEqual({ done: true })
    expect(answersAt(asked.server)).toBe(1)
  })

  it('is sent once where the server says OK in its own words', async () => {
    const asked = await ask(response => void response.writeHead(200, { 'content-type': 'text/plain' }).end('OK'))
    await accept(asked)
    await asked.server.until(() => answersAt(asked.server) === 1, 'the answer')
    asked.finish()
    expect(await asked.call.result()).toEqual({ done: true })
    expect(asked.failures).toEqual([])
  })

  // The specification: a server that cannot accept a message answers with an HTTP error. 404: it has lost the session.
  it.each([400, 403, 404, 409, 422])('that the server refuses with %i fails its call', async status => {
    const asked = await ask(response => void response.writeHead(status).end())
    await accept(asked)
    expect(await asked.call.failure()).toMatchObject({
      message: 'Server "far" did not take the answer to its question',
      data: { reason: 'upstream_stream_lost' },
    })
    await asked.server.arrived('notifications/cancelled')
    asked.finish() // a server that uses the answer all the same comes too late
    await asked.callAgain().question()
    expect(asked.call.finals()).toHaveLength(1)
    expect(answersAt(asked.server)).toBe(1)
  })
})

describe('a message that matters', () => {
  /** A queue before a server that treats every message in that way. */
  const queueBefore = (outcome: SendOutcome) => {
    vi.useFakeTimers()
    const counts = { posts: 0, lost: 0 }
    const post = (_: Buffer[], __: string, done: (outcome: SendOutcome) => void): void => {
      counts.posts++
      done(outcome)
    }
    const queue = new SendQueue({ post, log: SILENT })
    queue.put([Buffer.from('answer')], 'answer', () => counts.lost++)
    return { queue, counts }
  }

  it.each(['failed', 'unavailable'] as const)(
    'is given up after about 10 s where each attempt is "%s"',
    async outcome => {
      const { queue, counts } = queueBefore(outcome)
      await vi.advanceTimersByTimeAsync(5500)
      expect(counts.lost).toBe(0)
      expect(queue.size).toBe(1)
      await vi.advanceTimersByTimeAsync(8500)
      expect(counts).toEqual({ posts: 9, lost: 1 })
      expect(queue.size).toBe(0)
      await vi.advanceTimersByTimeAsync(60_000)
      expect(counts).toEqual({ posts: 9, lost: 1 })
    },
  )

  it('is sent once where the server refuses it', () => {
    const { queue, counts } = queueBefore('refused')
    expect(counts).toEqual({ posts: 1, lost: 1 })
    expect(queue.size).toBe(0)
  })

  it('is not sent again once the server has lost its state', async () => {
    const { queue, counts } = queueBefore('unavailable')
    queue.clear()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(counts).toEqual({ posts: 1, lost: 0 })
    expect(queue.size).toBe(0)
  })
})
