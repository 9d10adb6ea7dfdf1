import { deliver } from '../../protocol/deliver.ts'
import { ERRORS, NoAnswer, type RpcError } from '../../protocol/errors.ts'
import type { Caller, Exchange, Peer } from '../../protocol/exchange.ts'
import { LOGIN_TOOL } from '../../protocol/login-tool.ts'
import { META } from '../../protocol/meta.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { isModern, REVISIONS, type Revision, SERVED } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { errorOfFailure } from '../failures.ts'

const LISTEN = 'subscriptions/listen'
const CHANGING = { listChanged: true }

/** The lists of a server that cannot be listed. */
const LISTS: Readonly<Record<string, string>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
}

/** Requests that are about the session, and not about the server. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['ping', 'logging/setLevel', 'resources/unsubscribe'])
const MODERN_RESULT = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }

/** What the callers of one server get while their login is missing. */
export interface StandIn {
  /** The peer of a caller that could not open the server; undefined: the error is about something else. */
  peerFor(caller: Caller, error: RpcError): Peer | undefined
  /** Answers a request of that revision in place of the server; false: the error is the answer. */
  answer(exchange: Exchange, revision: Revision, error: RpcError): boolean
  /** A login came or went: listeners are ended, so that they listen to the server itself. Undefined: of every principal. */
  loginChanged(principal: string | undefined): void
}

/**
 * Answers for a server that wants a login: it has one tool, `login`. Every other call fails with `login_required`.
 * `wasNeeded`: whether an earlier process may have answered for it.
 */
export const createStandIn = (server: string, wasNeeded: () => boolean): StandIn => {
  const listeners = new Set<Exchange>()
  let hasAnswered = false

  const listen = (exchange: Exchange): void => {
    if (exchange.signal.reason) return
    listeners.add(exchange)
    exchange.signal.onAbort(() => listeners.delete(exchange))
    const params = Json.of({ notifications: exchange.params.get('notifications') ?? Json.empty })
    void deliver(exchange.sink, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
  }

  const dispatchIn =
    (revision: Revision, why?: string) =>
    (exchange: Exchange): void => {
      const { kind, method, params, sink } = exchange
      hasAnswered = true
      if (kind === 'notification') return
      if (method === LISTEN) return listen(exchange)
      const result = resultOf(server, method, revision, why)
      if (result) return void deliver(sink, { kind: 'result', result })
      const isTool = method === 'tools/call' && params.get('name')?.asString() === LOGIN_TOOL
      const failure = { reason: 'login_required', text: 'needs a login' } as const
      const error = errorOfFailure(server, failure, isTool ? { tool: LOGIN_TOOL } : {})
      void deliver(sink, { kind: 'failure', error })
    }

  const peers = new Map<Revision, Peer>(
    REVISIONS.map(revision => [revision, { revision, asks: false, dispatch: dispatchIn(revision) }]),
  )

  return {
    peerFor: ({ revision, isHealthCheck }, error) => {
      if (!isAboutLogin(error) || isHealthCheck) return undefined
      const why = impossibilityOf(error)
      return why === undefined ? peers.get(revision) : { revision, asks: false, dispatch: dispatchIn(revision, why) }
    },
    answer: (exchange, revision, error) => {
      const { method, sink, caller } = exchange
      if (isAboutLogin(error) && (method in LISTS || method === 'server/discover')) {
        dispatchIn(revision, impossibilityOf(error))(exchange)
        return true
      }
      // The client got the capabilities of the stand-in when it connected, and may list what the server does not have.
      const mayBelieve = caller.session !== undefined && (hasAnswered || wasNeeded())
      const isUnknown = error.code === ERRORS.methodNotFound.code && mayBelieve
      const member = isUnknown && Object.hasOwn(LISTS, method) ? LISTS[method] : undefined
      if (member === undefined) return false
      void deliver(sink, { kind: 'result', result: inRevision({ [member]: [] }, revision) })
      return true
    },
    loginChanged: principal => {
      for (const exchange of [...listeners]) {
        if (principal !== undefined && exchange.caller.principal !== principal) continue
        listeners.delete(exchange)
        void deliver(exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
      }
    },
  }
}

/** Where no login can be started, the tool tells why. */
const LOGIN_REASONS: ReadonlySet<string | undefined> = new Set(['login_required', 'login_impossible'])

const isAboutLogin = (error: RpcError): boolean =>
  error instanceof NoAnswer && LOGIN_REASONS.has(error.data?.get('reason')?.asString())

/** Why no login would help; undefined: one would. */
const impossibilityOf = ({ message, data }: RpcError): string | undefined =>
  data?.get('reason')?.isString('login_impossible') ? message : undefined

/** Undefined for requests that only the server itself can answer. */
const resultOf = (server: string, method: string, revision: Revision, why?: string): Json | undefined => {
  if (method === 'server/discover') return discovery(server)
  if (WITHOUT_EFFECT.has(method)) return Json.empty
  const member = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined
  if (member === undefined) return undefined
  return inRevision({ [member]: member === 'tools' ? [loginTool(server, why)] : [] }, revision)
}

const inRevision = (result: PlainObject, revision: Revision): Json =>
  Json.of(isModern(revision) ? { ...MODERN_RESULT, ...result } : result)

/** It has every list that the server may turn out to have: a session learns of capabilities only once. */
const discovery = (server: string): Json =>
  Json.of({
    ...MODERN_RESULT,
    supportedVersions: SERVED,
    capabilities: { tools: CHANGING, prompts: CHANGING, resources: CHANGING },
    instructions: `Server "${server}" needs a login. Call the tool "${LOGIN_TOOL}" to start it.`,
    _meta: { [META.serverInfo]: { name: server, version: 'unknown' } },
  })

const loginTool = (server: string, why: string | undefined): PlainObject => ({
  name: LOGIN_TOOL,
  title: `Log in to ${server}`,
  description: `Server "${server}" needs a login before its tools can be used. Call this tool to get the link, or to wait until the user has logged in.`,
  inputSchema: { type: 'object', properties: {} },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true },
  _meta: { [META.login]: why === undefined ? true : { error: why } },
})
