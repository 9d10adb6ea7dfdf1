import { TASKS_EXTENSION } from '../../src/protocol/meta.ts'
import { modern, openSession, openStream, send } from './raw.ts'

export type Members = Record<string, unknown>
/** Of a client with the tasks extension, which can be asked. */
export const WITH_TASKS = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } }

/** A modern client with the tasks extension. */
export const modernClient = (
  url: string,
  capabilities: object = WITH_TASKS,
  credentials: Readonly<Record<string, string>> = {},
) => {
  const ask = async (method: string, params: Members): Promise<Members> => {
    const { headers, body } = modern(1, method, params, { capabilities })
    const json = answerIn(await send(url, { headers: { ...headers, ...credentials }, body }))
    if (json.error) throw Object.assign(new Error(json.error.message), json.error)
    return json.result ?? {}
  }
  const until = async (taskId: unknown, statuses: readonly string[]): Promise<Members> => {
    for (const start = Date.now(); Date.now() - start < 20_000; await new Promise(done => setTimeout(done, 50))) {
      const task = await ask('tasks/get', { taskId })
      if (statuses.includes(String(task.status))) return task
    }
    throw new Error(`never ${statuses.join(' or ')}`)
  }
  return { ask, until, over: (taskId: unknown) => until(taskId, ['completed', 'failed', 'cancelled']) }
}

/** The answer in a reply, which is a stream if it took long. */
const answerIn = ({ json, text }: Awaited<ReturnType<typeof send>>): typeof json => {
  if (json.result || json.error) return json
  const messages = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data ?? '') as typeof json)
  return messages.find(({ result, error }) => result || error) ?? {}
}

/** A legacy client, in a session. */
export const legacyClient = async (
  url: string,
  capabilities: object = { elicitation: {} },
  revision = '2025-11-25',
  credentials: Readonly<Record<string, string>> = {},
) => {
  const session = await openSession(url, revision, capabilities, credentials)
  const headers = { ...session.headers, ...credentials }
  let id = 100
  const ask = async (method: string, params: Members): Promise<Members> => {
    const json = answerIn(await send(url, { headers, body: { jsonrpc: '2.0', id: ++id, method, params } }))
    if (json.error) throw Object.assign(new Error(json.error.message), json.error)
    return json.result ?? {}
  }
  /** A request whose answer may be preceded by questions; `answer` gives the result for each. */
  const converse = async (method: string, params: Members, answer: (params: Members) => Members): Promise<Members> => {
    const own = ++id
    const stream = await openStream(url, { headers, body: { jsonrpc: '2.0', id: own, method, params } })
    for (;;) {
      const json = (await stream.next())?.json
      if (!json) throw new Error('the stream ended')
      if (json.id === own && json.method === undefined) return json.result ?? {}
      if (json.method !== undefined && json.id !== undefined)
        await send(url, { headers, body: { jsonrpc: '2.0', id: json.id, result: answer(json.params ?? {}) } })
    }
  }
  return { ask, converse }
}

/** The text in the content of a result. */
export const textIn = (result: unknown): string =>
  ((result as { content?: readonly { text?: string }[] }).content ?? []).map(({ text }) => text ?? '').join('')
