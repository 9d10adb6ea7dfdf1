import { META } from '../../src/protocol/meta.ts'
import { isModern, type Revision } from '../../src/protocol/revisions.ts'
import { type Asked, type CallOptions, createEar, type MatrixClient, type Outcome, type Wire } from './client.ts'

/** A way to send messages where answers, notices and questions all come back on one channel. */
export interface Line {
  send(message: object): void | Promise<void>
  /** Called once, with what takes every message that comes back. */
  listen(take: (message: Wire, text: string) => void): void
  close(): void | Promise<void>
}

/** A client on one channel, a pipe or SSE; a modern one answers questions by sending its request again. */
export const messageClient = async (line: Line, revision: Revision, capabilities: object): Promise<MatrixClient> => {
  const received: Wire[] = []
  const texts: string[] = []
  const ear = createEar()
  const open = new Map<
    unknown,
    { settle: (message: Wire) => void; options: CallOptions; notices: Wire[]; asked: Asked[]; token: unknown }
  >()
  let lastId = 0

  line.listen((message, text) => {
    received.push(message)
    texts.push(text)
    if (message.method === undefined) return void open.get(message.id)?.settle(message)
    const token = message.params?.progressToken
    const owner =
      [...open.values()].find(call => token !== undefined && call.token === token) ?? [...open.values()].at(-1)
    if (message.id !== undefined) return reply(message, owner)
    const isOutside =
      message.method.startsWith('notifications/resources/') ||
      message.method.endsWith('/list_changed') ||
      message.method.startsWith('notifications/subscriptions/')
    if (isOutside || !owner) return ear.hear(message)
    owner.notices.push(message)
    owner.options.onNotice?.(message)
  })

  const reply = (message: Wire, owner: { options: CallOptions; asked: Asked[] } | undefined): void => {
    const question: Asked = { key: String(message.id), method: message.method ?? '', params: message.params ?? {} }
    owner?.asked.push(question)
    const answer = owner?.options.answer?.(question) ?? { error: { code: -32601, message: 'not here' } }
    void line.send({
      jsonrpc: '2.0',
      id: message.id,
      ...('error' in answer ? { error: answer.error } : { result: answer }),
    })
  }

  const envelope = isModern(revision)
    ? {
        [META.protocolVersion]: revision,
        [META.clientInfo]: { name: 'test', version: '1' },
        [META.clientCapabilities]: capabilities,
      }
    : undefined

  const exchange = (
    method: string,
    params: Record<string, unknown>,
    options: CallOptions,
    notices: Wire[],
    asked: Asked[],
  ): Promise<Wire> => {
    const id = ++lastId
    const meta = envelope || options.meta ? { _meta: { ...envelope, ...options.meta } } : {}
    return new Promise((resolve, reject) => {
      const settle = (message: Wire): void => {
        open.delete(id)
        resolve(message)
      }
      open.set(id, { settle, options, notices, asked, token: options.meta?.progressToken })
      Promise.resolve(line.send({ jsonrpc: '2.0', id, method, params: { ...params, ...meta } })).catch(reject)
    })
  }

  const call: MatrixClient['call'] = async (method, params = {}, options = {}): Promise<Outcome> => {
    const notices: Wire[] = []
    const asked: Asked[] = []
    let more: Record<string, unknown> = {}
    for (;;) {
      const { result, error } = await exchange(method, { ...params, ...more }, options, notices, asked)
      if (result?.resultType !== 'input_required')
        return { ...(result && { result }), ...(error && { error }), notices, asked }
      const inputResponses: Record<string, unknown> = {}
      for (const [key, request] of Object.entries((result.inputRequests ?? {}) as Record<string, Omit<Asked, 'key'>>)) {
        const question = { key, method: request.method, params: request.params ?? {} }
        asked.push(question)
        const answer = options.answer?.(question)
        if (answer && !('error' in answer)) inputResponses[key] = answer
      }
      more = { inputResponses, ...(result.requestState !== undefined && { requestState: result.requestState }) }
    }
  }

  const notify: MatrixClient['notify'] = async (method, params = {}) =>
    void (await line.send({ jsonrpc: '2.0', method, params }))

  if (!isModern(revision)) {
    const hello = { protocolVersion: revision, capabilities, clientInfo: { name: 'test', version: '1' } }
    const { error } = await call('initialize', hello)
    if (error) throw new Error(error.message)
    await notify('notifications/initialized')
  }

  return {
    revision,
    received,
    texts,
    call,
    notify,
    heard: ear.wait,
    listen: async (uris = []) => {
      if (isModern(revision)) {
        const notifications = {
          toolsListChanged: true,
          promptsListChanged: true,
          resourcesListChanged: true,
          resourceSubscriptions: uris,
        }
        void call('subscriptions/listen', { notifications })
        await ear.wait('notifications/subscriptions/acknowledged')
        return
      }
      for (const uri of uris) await call('resources/subscribe', { uri })
    },
    close: async () => void (await line.close()),
  }
}
