import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import {
  type Arrived,
  callerOf,
  exchangeWith,
  legacy,
  openStream,
  request,
  result,
  scriptedServer,
} from '../../../test/support/scripted-server.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { connectRemote } from '../connect-remote.ts'
import { SendQueue } from './send-queue.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const MOST = 1024
const AT_A_TIME = 16
const isAnswer = ({ body }: Arrived): boolean => body.method === undefined && body.id !== undefined
const ACCEPT = { kind: 'result', result: Json.of({ action: 'accept', content: {} }) } as const

/** A server whose only tool asks so many questions at once, and which takes its time with each answer. */
const askAll = async (count: number) => {
  const taking = { now: 0, most: 0 }
  const server = await scriptedServer(
    legacy((arrived, response) => {
      if (arrived.body.method === 'tools/call') {
        const stream = openStream(response)
        for (let i = 0; i < count; i++) stream.event(request(`q${i}`, 'elicitation/create', { message: `${i}` }))
        return
      }
      taking.most = Math.max(taking.most, ++taking.now)
      setTimeout(() => {
        taking.now--
        response.writeHead(202).end()
      }, 5)
    }),
  )
  const config = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'legacy', timeoutMs: 5000 } as const
  const upstream = connectRemote({ name: 'far', ...config }, { log: SILENT })
  closing.push(
    () => server.close(),
    () => upstream.close(),
  )
  const peer = await upstream.open(callerOf())
  const questions: Extract<Frame, { kind: 'question' }>[] = []
  const call = exchangeWith(peer, 'tools/call', {
    params: { name: 'ask' },
    onFrame: frame => void (frame.kind === 'question' && questions.push(frame)),
  })
  const { response, body } = await server.arrived('tools/call')
  const finish = () => response.end(`data: ${JSON.stringify(result(body.id, { content: [] }))}\n\n`)
  const answered = () => server.arrivals.filter(isAnswer)
  return { server, call, questions, taking, finish, answered }
}

describe('a server that asks many questions at once', () => {
  it('gets its answers a few at a time, on few connections', async () => {
    const { server, call, questions, taking, finish, answered } = await askAll(200)
    await call.question(199)
    for (const question of questions) question.answer(ACCEPT)
    await server.until(() => answered().length === 200, 'every answer')
    expect(taking.most).toBe(AT_A_TIME)
    expect(server.sockets.size).toBeLessThan(3 * AT_A_TIME) // one that has just been used is not free at once
    expect(new Set(answered().map(({ body }) => body.id)).size).toBe(200)
    expect(answered()[0]?.body).toMatchObject({ result: { action: 'accept' } })
    finish()
    expect(await call.result()).toEqual({ content: [] })
  })

  it('gets an error for each question beyond the limit', async () => {
    const { server, call, questions, finish, answered } = await askAll(MOST + 20)
    await server.until(() => answered().length === 20, 'twenty refusals')
    expect(answered().map(({ body }) => body.id)).toEqual(
      expect.arrayContaining(Array.from({ length: 20 }, (_, i) => `q${MOST + i}`)),
    )
    expect(answered()[0]?.body.error).toMatchObject({ code: -32603, data: { reason: 'too_many_questions' } })
    expect(questions).toHaveLength(MOST)
    for (const question of questions) question.answer(ACCEPT)
    await server.until(() => answered().length === MOST + 20, 'every answer')
    finish()
    expect(await call.result()).toEqual({ content: [] })
  })
})

describe('a queue', () => {
  const open = (options: { most?: number; mostBytes?: number } = {}) => {
    const sent: { what: string; done: () => void }[] = []
    const warned: string[] = []
    const log = { ...SILENT, warn: (fields: object) => void warned.push((fields as { what: string }).what) }
    const post = (_: Buffer[], what: string, done: (outcome: 'taken') => void) =>
      void sent.push({ what, done: () => done('taken') })
    const queue = new SendQueue({ post, log, most: 2, ...options })
    const put = (what: string, bytes = 1) => queue.put([Buffer.alloc(bytes)], what)
    return { queue, put, sent, warned, names: () => sent.map(({ what }) => what) }
  }

  it('counts a message as taken once, even if that is reported twice', () => {
    const { queue, put, sent, names } = open()
    for (const what of ['a', 'b', 'c', 'd']) put(what)
    expect([names(), queue.size]).toEqual([['a', 'b'], 4])
    sent[0]?.done()
    sent[0]?.done()
    expect([names(), queue.size]).toEqual([['a', 'b', 'c'], 3])
    for (const { done } of [...sent]) done()
    sent[3]?.done()
    expect([names(), queue.size]).toEqual([['a', 'b', 'c', 'd'], 0])
  })

  it('keeps a limited number of bytes for a server that takes nothing, and logs what it drops', () => {
    const { put, sent, names, warned } = open({ mostBytes: 10 })
    put('large', 100) // it need not wait
    put('b')
    put('c', 8)
    put('d', 8)
    put('e', 2)
    expect(warned).toEqual(['d'])
    for (let i = 0; i < 4; i++) sent[i]?.done()
    expect(names()).toEqual(['large', 'b', 'c', 'e'])
  })

  it('sends nothing more when it is closed', () => {
    const { queue, put, sent, names } = open()
    for (const what of ['a', 'b', 'c']) put(what)
    queue.close()
    sent[0]?.done()
    put('d')
    expect(names()).toEqual(['a', 'b'])
  })

  it('does not keep what it has sent, even if it is never empty', async () => {
    const dones: (() => void)[] = []
    const queue = new SendQueue({
      post: (_pieces, _what, done) => void dones.push(() => done('taken')),
      log: SILENT,
      most: 1,
    })
    const messages: WeakRef<Buffer>[] = []
    const put = (): void => {
      const message = Buffer.alloc(10)
      messages.push(new WeakRef(message))
      queue.put([message], 'answer')
    }
    put()
    for (let i = 0; i < 5000; i++) {
      put()
      dones.shift()?.()
    }
    expect(queue.size).toBe(1)
    await new Promise(setImmediate) // a WeakRef is kept for the turn it was made in
    collect()
    expect(messages.filter(message => message.deref()).length).toBeLessThan(500)
  })
})
