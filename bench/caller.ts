import { isDeepStrictEqual } from 'node:util'
import { Connection } from './connection.ts'
import { type HttpResponse, headerOf } from './http-response.ts'
import type { Dialect } from './peer.ts'
import { type Endpoint, endSession, FIRST_ID, initialize, initialized, legacyCall, modernCall } from './requests.ts'
import type { Scenario } from './scenarios.ts'

/** One connection that repeats one call, or a few in turn. */
export interface Caller {
  call(done: () => void): void
  close(): Promise<void>
}

const send = (connection: Connection, request: Buffer): Promise<HttpResponse> =>
  new Promise(resolve => connection.call(request, resolve))

const messageOf = (response: HttpResponse): { id?: unknown; result?: Record<string, unknown> } => {
  const text = response.body.toString()
  if (!headerOf(response, 'content-type')?.startsWith('text/event-stream')) return JSON.parse(text)
  const data = [...text.matchAll(/^data: ?(.+)$/gm)].map(match => match[1] ?? '')
  return JSON.parse(data.at(-1) ?? 'null')
}

/** Sends initialize and initialized, and returns the id of the session: a server need not have sessions. */
export const openSession = async (connection: Connection, to: Endpoint): Promise<string | undefined> => {
  const response = await send(connection, initialize(to))
  const session = headerOf(response, 'mcp-session-id')
  if (response.status !== 200 || messageOf(response).result === undefined)
    throw new Error(`initialize was answered ${response.status}: ${response.body}`)
  await send(connection, initialized(to, session))
  return session
}

const assertRight = (response: HttpResponse, scenario: Scenario): void => {
  const { id, result } = messageOf(response)
  const { content, structuredContent } = result ?? {}
  const isRight =
    response.status === 200 &&
    id === FIRST_ID &&
    isDeepStrictEqual(content, scenario.result.content) &&
    isDeepStrictEqual(structuredContent, scenario.result.structuredContent)
  if (!isRight)
    throw new Error(`wrong answer to ${scenario.name}: ${response.status} ${response.body.subarray(0, 500)}`)
}

interface CallerOptions {
  readonly names?: readonly string[] | undefined
  readonly home?: Endpoint | undefined // where the session is opened; elsewhere than its calls go
}

/**
 * Opens a connection (and a session, where the dialect has them) and makes sure that the answer is right. With `names`
 * the tools of these names are called in turn, and each must answer as the scenario says.
 */
export const openCaller = async (
  to: Endpoint,
  dialect: Dialect,
  scenario: Scenario,
  fail: (error: Error) => void,
  { names, home = to }: CallerOptions = {},
): Promise<Caller> => {
  const connection = await Connection.open(to.url, fail)
  const opener = home === to ? connection : await Connection.open(home.url, fail)
  const session = dialect === 'legacy' ? await openSession(opener, home) : undefined
  if (opener !== connection) opener.close()
  const requests = (names ?? [scenario.name]).map(name =>
    dialect === 'modern' ? modernCall(to, scenario, name) : legacyCall(to, session, scenario),
  )
  const idsAt = requests.map(request => request.indexOf(`"id":${FIRST_ID}`) + '"id":'.length)
  for (const request of requests) assertRight(await send(connection, request), scenario)
  let id = FIRST_ID
  return {
    call: done => {
      const digits = String(++id)
      const at = id % requests.length
      const request = requests[at] as Buffer
      request.write(digits, idsAt[at] as number, 'latin1')
      connection.call(request, response => {
        if (response.status === 200 && response.body.includes(digits)) done()
        else fail(new Error(`wrong answer to call ${digits}: ${response.status} ${response.body.subarray(0, 500)}`))
      })
    },
    close: async () => {
      if (session !== undefined) await send(connection, endSession(to, session))
      connection.close()
    },
  }
}
