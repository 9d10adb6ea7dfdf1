import type { Way } from './daemon.ts'
import type { Exception } from './report.ts'
import type { SuiteRevision } from './suite.ts'

/** The suite as a client of the gateway, with some server behind it. */
export interface ServerCell {
  readonly leg: 'server'
  readonly upstream: Upstream
  readonly revision: SuiteRevision
  readonly way: Way
  readonly exceptions?: readonly Exception[]
  /** Scenarios that the suite does not score, and that pass nevertheless. */
  readonly unscored?: readonly string[]
}

/** The suite as the server behind the gateway, with a real client before it. */
export interface ClientCell {
  readonly leg: 'client'
  readonly client: 'sdk-v1' | 'sdk-v2'
  readonly revision: SuiteRevision
  readonly way: Way
  readonly exceptions?: readonly Exception[]
  /** Scenarios that the suite does not score, and that pass nevertheless. */
  readonly unscored?: readonly string[]
}

/** The suite as a client of the gateway's own authorization server. */
export interface AuthorizationCell {
  readonly leg: 'authorization'
  readonly revision: SuiteRevision
  readonly exceptions?: readonly Exception[]
}

/** One run of the suite. */
export type Cell = ServerCell | ClientCell | AuthorizationCell

type Pair = Omit<ServerCell, 'way'> | Omit<ClientCell, 'way'>

/** What stands behind the gateway; `sdk-v1` speaks 2025-11-25 and older, `sdk-v2` only 2026-07-28. */
export type Upstream = 'demo' | 'sdk-v1-http' | 'sdk-v1-sse' | 'sdk-v1-stdio' | 'sdk-v2-http' | 'sdk-v2-stdio'

/** What no gateway can do for a server that asks by requests, for a request has no key and leaves no state. */
const KEYLESS: readonly Exception[] = [
  {
    scenario: 'input-required-result-basic-elicitation',
    status: 'FAILURE',
    why: 'the suite wants its question under the key user_name, and the server’s question has no key',
  },
  {
    scenario: 'input-required-result-ignore-extra-params',
    status: 'WARNING',
    why: 'the suite answers under that key too, and without the state that finds the waiting call',
  },
]

/** The suite takes a missing `retry` field for a flaw in every server that streams (decision 0063). */
const NO_RETRY: readonly Exception[] = [
  {
    scenario: 'server-sse-polling',
    status: 'WARNING',
    why: 'a server of this transport or era has no stream of a call that it could close, so its client is not told to poll',
    mayPass: true, // a call that takes less than 100 ms is answered as JSON, of which the suite expects no `retry`
  },
]

/** Extensions of the specification that the gateway has; it has no DPoP. */
const EXTENSIONS: readonly string[] = [
  'auth/client-credentials-basic',
  'auth/client-credentials-jwt',
  'auth/wif-jwt-bearer',
  'auth/enterprise-managed-authorization',
]

/** Scenarios of 2025-11-25 that the suite does not score. */
const UNSCORED_LEGACY: readonly string[] = ['server-session-lifecycle', 'json-schema-2020-12', 'server-sse-polling']

/** Scenarios of 2026-07-28 that the suite does not score, for which every server has the tools. */
const UNSCORED_MODERN: readonly string[] = [
  'json-schema-2020-12',
  'http-header-validation',
  'http-custom-header-server-validation',
]

/**
 * Those and the scenarios of the tasks extension. The tenth, `tasks-status-notifications`, sends no request: in 0.2.0-alpha.12
 * its `run` only reports SKIPPED, "pending subscriptions/listen rewrite". `test/e2e/tasks/` tests these notifications.
 */
const UNSCORED_TASKS: readonly string[] = [
  ...UNSCORED_MODERN,
  'tasks-capability-negotiation',
  'tasks-dispatch-and-envelope',
  'tasks-lifecycle',
  'tasks-mrtr-composition',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-request-state-removal',
  'tasks-required-task-error',
  'tasks-wire-fields',
]

/** What stands on both sides of the gateway: first both of one era, then of different ones. */
const PAIRS: readonly Pair[] = [
  { leg: 'server', upstream: 'demo', revision: '2025-11-25', unscored: UNSCORED_LEGACY },
  { leg: 'server', upstream: 'demo', revision: '2026-07-28', unscored: UNSCORED_TASKS },
  { leg: 'server', upstream: 'sdk-v1-http', revision: '2025-11-25', unscored: UNSCORED_LEGACY },
  { leg: 'server', upstream: 'sdk-v1-sse', revision: '2025-11-25', exceptions: NO_RETRY, unscored: UNSCORED_LEGACY },
  { leg: 'server', upstream: 'sdk-v1-stdio', revision: '2025-11-25', exceptions: NO_RETRY, unscored: UNSCORED_LEGACY },
  { leg: 'server', upstream: 'sdk-v2-http', revision: '2026-07-28', unscored: UNSCORED_MODERN },
  { leg: 'server', upstream: 'sdk-v2-stdio', revision: '2026-07-28', unscored: UNSCORED_MODERN },
  { leg: 'server', upstream: 'sdk-v2-http', revision: '2025-11-25', exceptions: NO_RETRY, unscored: UNSCORED_LEGACY },
  { leg: 'server', upstream: 'sdk-v2-stdio', revision: '2025-11-25', exceptions: NO_RETRY, unscored: UNSCORED_LEGACY },
  { leg: 'server', upstream: 'sdk-v1-http', revision: '2026-07-28', exceptions: KEYLESS, unscored: UNSCORED_MODERN },
  { leg: 'server', upstream: 'sdk-v1-sse', revision: '2026-07-28', exceptions: KEYLESS, unscored: UNSCORED_MODERN },
  { leg: 'server', upstream: 'sdk-v1-stdio', revision: '2026-07-28', exceptions: KEYLESS, unscored: UNSCORED_MODERN },
  { leg: 'client', client: 'sdk-v1', revision: '2025-11-25', unscored: EXTENSIONS },
  { leg: 'client', client: 'sdk-v2', revision: '2026-07-28', unscored: EXTENSIONS },
  { leg: 'client', client: 'sdk-v2', revision: '2025-11-25', unscored: EXTENSIONS },
  { leg: 'client', client: 'sdk-v1', revision: '2026-07-28', unscored: EXTENSIONS },
  { leg: 'client', client: 'sdk-v1', revision: '2025-03-26' },
  { leg: 'client', client: 'sdk-v2', revision: '2025-03-26' },
]

const WAYS: readonly Way[] = ['alone', 'among']

/** Servers that the suite also meets in a workspace above its budget: a modern one in the gateway, and one of each SDK. */
const BUDGETED: readonly Upstream[] = ['demo', 'sdk-v1-http', 'sdk-v2-http']

const isBudgeted = (pair: Pair): boolean => pair.leg === 'server' && BUDGETED.includes(pair.upstream)

/** Every cell, in the order they are shown: the same is asked of a server in every workspace. */
export const CELLS: readonly Cell[] = [
  ...WAYS.flatMap(way => PAIRS.map(pair => ({ ...pair, way }))),
  ...PAIRS.filter(isBudgeted).map(pair => ({ ...pair, way: 'budgeted' as const })),
  { leg: 'authorization', revision: '2026-07-28' },
]

/** How a cell is called on the command line and in the table. */
export const nameOf = (cell: Cell): string => {
  if (cell.leg === 'authorization') return cell.leg
  const pair = cell.leg === 'server' ? cell.upstream : `client-${cell.client}`
  return `${pair}-${cell.revision}${cell.way === 'alone' ? '' : `-${cell.way}`}`
}
