import { expect, it, onTestFinished } from 'vitest'
import { type Script, scriptedServer } from '../../../test/support/scripted-server.ts'
import { SILENT } from '../../telemetry/log.ts'
import { createHttpLink } from '../http/http-link.ts'
import { type EndOutcome, endSession, sessionHeaders } from './session-headers.ts'

const endAt = async (script: Script): Promise<EndOutcome> => {
  const server = await scriptedServer(script)
  const config = { kind: 'remote', type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 } as const
  const link = createHttpLink({ name: 'far', url: server.url, ...config }, { log: SILENT, answerMs: 500 })
  onTestFinished(async () => {
    await link.http.close()
    await server.close()
  })
  return endSession(link, sessionHeaders(link, { sessionId: 's1' }))
}

const answer =
  (status: number, text?: string): Script =>
  (_, response) =>
    response.writeHead(status, { 'content-type': 'text/plain' }).end(text)

it.each([
  [200, 'Session terminated'],
  [202, undefined],
  [204, undefined],
  [400, 'Bad Request: Server not initialized'],
  [401, 'Session not found'],
  [404, 'Session not found'],
  [405, 'Method Not Allowed'],
  [410, undefined],
  [501, undefined],
  [503, 'unknown session'],
])('a session counts as ended where the server answers DELETE with %i %s', async (status, text) => {
  expect(await endAt(answer(status, text))).toBe('ended')
})

it.each([
  [401, undefined],
  [403, 'Forbidden'],
  [408, undefined],
  [429, 'Too Many Requests'],
  [500, 'Internal Server Error'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [504, undefined],
])('a session may be open still where the server answers DELETE with %i %s', async (status, text) => {
  expect(await endAt(answer(status, text))).toBe('refused')
})

it('a session counts as ended where a success has a body that does not end', async () => {
  const script: Script = (_, response) => void response.writeHead(200, { 'content-length': 10 }).write('{')
  expect(await endAt(script)).toBe('ended')
})

it('a session may be open still where the server cuts the connection', async () => {
  expect(await endAt((_, response) => void response.destroy())).toBe('unreachable')
})
