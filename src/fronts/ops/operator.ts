import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admit } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Policy } from '../../protocol/policy.ts'
import type { ServerStatus } from '../../protocol/status.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { Handler, Routes } from '../http/listen.ts'
import { PRIVATE_HEADERS, refuseUnread, sendJson } from '../http/response.ts'
import { indexHtml, indexJson } from './index-page.ts'
import type { OperatorView } from './operator-view.ts'

interface Options {
  readonly view: (request: IncomingMessage) => OperatorView
  readonly version: string
  readonly servers: () => readonly ServerStatus[]
  readonly scrape: () => Promise<{ readonly type: string; readonly text: string }>
  readonly admit: Admit
  readonly workspaces: () => readonly string[]
  /** The servers of a workspace that a caller may know of. */
  readonly serversOf: (workspace: string, policy: Policy | undefined) => readonly string[] | undefined
  /** The workspaces a request may see. */
  readonly visible: (request: IncomingMessage) => readonly string[]
  readonly log: Log
}

const HEALTHY = [Buffer.from('{"status":"ok"}')]
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: this is read with GET')

/** What an operator asks: whether it lives, whether it is ready, how it is, and what there is. */
export const createOperator = (options: Options): Routes => {
  const { view, version, servers, scrape, admit, workspaces, serversOf, visible, log } = options

  let isReady = false

  const ready: Handler = (request, response) => {
    const states = servers()
    // Once every server has been tried; one that is slow to start has a reason, and one that comes later stops nobody.
    isReady ||= states.every(({ state, reason }) => state !== 'connecting' || reason !== undefined)
    const { kind } = view(request)
    const shown = states.map(written).map(server => (kind === 'all' ? server : { ...server, reason: undefined }))
    const body = { status: isReady ? 'ready' : 'starting', ...(kind !== 'out' && { servers: shown }) }
    sendJson(response, isReady ? 200 : 503, [Json.of(body).toBytes()], PRIVATE_HEADERS)
  }

  const metrics: Handler = (request, response) => {
    const seen = view(request)
    if (seen.kind === 'out') return refuseUnread(request, response, seen.status, seen.error, seen.headers)
    scrape().then(
      ({ type, text }) => sendText(response, type, text),
      error => fail(request, response, error),
    )
  }

  /** What there is, for those who may come in. */
  const index: Handler = (request, response) => {
    const seen = visible(request)
    void Promise.resolve(admit(request, seen[0] ?? workspaces()[0] ?? '', response))
      .then(admission => {
        if (admission.kind === 'out')
          return refuseUnread(request, response, admission.status, admission.error, admission.headers)
        const shown = seen.map(name => ({ name, servers: serversOf(name, admission.policy) ?? [] }))
        if (request.headers.accept?.includes('text/html'))
          sendText(response, 'text/html; charset=utf-8', indexHtml(version, shown))
        else sendJson(response, 200, [indexJson(version, shown).toBytes()], PRIVATE_HEADERS)
      })
      .catch(error => fail(request, response, error))
  }

  const fail = (request: IncomingMessage, response: ServerResponse, error: unknown): void => {
    log.error({ err: error }, 'an operator could not be answered')
    if (!response.headersSent) refuseUnread(request, response, 500, rpcError('internal'))
  }

  return {
    '/healthz': reading((_request, response) => sendJson(response, 200, HEALTHY, PRIVATE_HEADERS)),
    '/readyz': reading(ready),
    '/metrics': reading(metrics),
    '/': reading(index),
  }
}

const reading =
  (handler: Handler): Handler =>
  (request, response, path) => {
    if (request.method === 'GET' || request.method === 'HEAD') return handler(request, response, path)
    refuseUnread(request, response, 405, GET_ONLY, { allow: 'GET, HEAD' })
  }

const written = ({ name, state, since, reason, retryAt, revision, tools }: ServerStatus) => ({
  name,
  state,
  since: timeOf(since),
  reason,
  retryAt: timeOf(retryAt),
  revision,
  tools,
})

const timeOf = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

const sendText = (response: ServerResponse, type: string, text: string): void => {
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text), ...PRIVATE_HEADERS })
  response.end(text)
}
