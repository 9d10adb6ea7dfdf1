import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { LineDecoder } from '../../../src/wire/ndjson.ts'
import { type Heard, listenMessages, react } from './brain.ts'
import { writeMessage } from './mutate.ts'
import type { Random } from './random.ts'

/** Servers that answer with damaged messages, as entries of a configuration. */
export interface FuzzServers {
  readonly entries: Readonly<Record<string, object>>
  close(): Promise<void>
}

const TIMEOUT_MS = 500 // silence of a call
const SILENT_MS = 150 // after a damaged handshake, before the channel or process ends
const RELAY = fileURLToPath(new URL('../../matrix/relay.mjs', import.meta.url))
const LIMITS = { idleMs: 1000, exitMs: 500, termMs: 500, processes: 8 }

/** How often a message is damaged; `calls` servers introduce themselves and list well. */
const damageOf = (habit: string, method: string, random: Random): boolean => {
  const isSpared = habit === 'calls' && !/call|get|read|complete|subscri/.test(method)
  return !isSpared && random.chance(method === 'initialize' || method === 'server/discover' ? 0.15 : 0.4)
}

/** An event with its framing damaged now and then. */
const writeEvent = (data: Buffer, random: Random, isDamaged: boolean): Buffer => {
  if (!isDamaged || random.chance(0.7)) return Buffer.concat([Buffer.from('event: message\ndata: '), data, END])
  const fields = random.pick([
    'event: error\n',
    'event: endpoint\n',
    'event: constructor\n',
    'retry: 99999999999999\n',
    'retry: 0\nid: é\u2028\n',
    `id: ${'x'.repeat(5000)}\n`,
    'id: a\u0000b\nid: 1\n',
    ': comment\n\n\n\ndata\ndata:\n\n',
    '\ufeff',
    'data: [\ndata: ',
  ])
  const end = random.pick(['\n\n', '\r\r', '\r\n\r\n', '\n', ''])
  return Buffer.concat([Buffer.from(`${fields}data: `), data, Buffer.from(end)])
}

const END = Buffer.from('\n\n')

const bodyOf = async (request: IncomingMessage): Promise<Heard> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    return JSON.parse(Buffer.concat(chunks).toString() || '{}') as Heard
  } catch {
    return {}
  }
}

export const startFuzzServers = async (random: Random): Promise<FuzzServers> => {
  const http = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  const channels = new Map<string, ServerResponse>()
  let opened = 0

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://server')
    const [, kind = '', habit = ''] = pathname.split('/')
    response.on('error', () => {})
    const heard = await bodyOf(request)
    if (kind === 'messages') return onChannel(searchParams.get('c') ?? '', habit, heard, response)
    if (kind === 'sse')
      return request.method === 'GET' ? openChannel(habit, response) : void response.writeHead(405).end()
    if (request.method === 'GET' && request.headers['mcp-session-id'] && kind !== 'modern') return onStream(response)
    if (request.method !== 'POST') return void response.writeHead(405).end()
    if (heard.id === undefined || heard.method === undefined) return void response.writeHead(202).end()
    answer(heard, kind === 'modern', habit, response)
  }

  const onStream = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const isDamaged = random.chance(0.5)
    for (const told of listenMessages({}, random))
      response.write(writeEvent(writeMessage(told, random, isDamaged), random, isDamaged))
    if (random.chance(0.3)) response.end()
  }

  const answer = (heard: Heard, isModern: boolean, habit: string, response: ServerResponse): void => {
    const { method = '' } = heard
    if (!isModern && method === 'server/discover') return void response.writeHead(400).end()
    const isDamaged = damageOf(habit, method, random)
    const session: Record<string, string> = method === 'initialize' ? { 'mcp-session-id': `s${++opened}` } : {}
    const text = (message: object): Buffer => writeMessage(message, random, isDamaged && random.chance(0.5))
    if (method === 'subscriptions/listen') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const told of listenMessages(heard, random)) response.write(writeEvent(text(told), random, isDamaged))
      return void (random.chance(0.2) && response.end())
    }
    const { before, answer, after } = react(heard, isModern, random)
    const status = isDamaged && random.chance(0.1) ? random.pick([202, 204, 400, 404, 429, 500, 503]) : 200
    if (before.length === 0 && random.chance(0.5)) {
      const type = isDamaged && random.chance(0.1) ? random.pick(['text/html', '', 'constructor']) : 'application/json'
      response.writeHead(status, { 'content-type': type, ...session })
      return void response.end(writeMessage(answer, random, isDamaged))
    }
    response.writeHead(status, { 'content-type': 'text/event-stream', ...session })
    for (const message of [...before, answer, ...after]) response.write(writeEvent(text(message), random, isDamaged))
    if (isDamaged && random.chance(0.1)) response.destroy()
    else response.end()
  }

  const openChannel = (habit: string, response: ServerResponse): void => {
    const id = String(++opened)
    channels.set(id, response)
    response.on('close', () => channels.delete(id))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const isDamaged = habit === 'all' && random.chance(0.1)
    response.write(
      writeEvent(Buffer.from(`/messages/${habit}?c=${id}`), random, isDamaged)
        .toString()
        .replace('event: message', 'event: endpoint'),
    )
    if (isDamaged) setTimeout(() => response.end(), SILENT_MS)
  }

  const onChannel = (id: string, habit: string, heard: Heard, response: ServerResponse): void => {
    const channel = channels.get(id)
    if (!channel) return void response.writeHead(404).end()
    response.writeHead(202).end('Accepted')
    say(
      heard,
      habit,
      false,
      (bytes, isDamaged) => void channel.write(writeEvent(bytes, random, isDamaged)),
      () => channel.end(),
    )
  }

  /** Says on a channel or pipe that many requests share; ends it where a damaged handshake may leave it silent. */
  const say = (
    heard: Heard,
    habit: string,
    isModern: boolean,
    write: (bytes: Buffer, isDamaged: boolean) => void,
    end: () => void,
  ): void => {
    const { id, method } = heard
    if (id === undefined || method === undefined) return
    const isDamaged = damageOf(habit, method, random)
    if (method === 'subscriptions/listen' && isModern) {
      for (const told of listenMessages(heard, random)) write(writeMessage(told, random, isDamaged), isDamaged)
      return
    }
    const { before, answer, after, isHandshake } = react(heard, isModern, random)
    for (const message of [...before, answer, ...after])
      write(writeMessage(message, random, isDamaged && random.chance(0.5)), isDamaged)
    if (isDamaged && isHandshake) setTimeout(end, SILENT_MS).unref()
  }

  const processes = createSocketServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let habit: readonly string[] | undefined
    const lines = new LineDecoder(line => {
      if (!habit) habit = line.toString().split(' ')
      else {
        const [era = '', care = ''] = habit
        const heard = JSON.parse(line.toString()) as Heard
        const write = (bytes: Buffer): void => void socket.write(Buffer.concat([bytes, NEWLINE]))
        if (era === 'legacy' && heard.method === 'server/discover')
          return write(
            Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: heard.id, error: { code: -32601, message: 'no' } })),
          )
        say(heard, care, era === 'modern', write, () => socket.destroy())
      }
    })
    socket.on('data', chunk => lines.feed(chunk))
  })
  const sockets = new Set<Socket>()

  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  await new Promise<void>(resolve => processes.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const { port } = processes.address() as AddressInfo
  const remote = (path: string) => ({ url: `${origin}/${path}`, timeout: TIMEOUT_MS })
  const program = (habit: string) => ({
    command: process.execPath,
    args: [RELAY, String(port), habit],
    timeout: TIMEOUT_MS,
    limits: LIMITS,
  })
  const kinds = ['calls', 'all'].flatMap(habit => [
    [`modern-${habit}`, remote(`modern/${habit}`)],
    [`streamable-${habit}`, remote(`streamable/${habit}`)],
    [`sse-${habit}`, remote(`sse/${habit}`)],
    [`pipe-${habit}`, program(`legacy ${habit}`)],
    [`modernpipe-${habit}`, program(`modern ${habit}`)],
  ])
  return {
    entries: Object.fromEntries(kinds),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      http.closeAllConnections()
      processes.close()
      http.close()
      await sleep(10)
    },
  }
}

const NEWLINE = Buffer.from('\n')
