import { REVISIONS, type Revision } from './revisions.ts'

export const LOG_SEVERITIES = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogSeverity = (typeof LOG_SEVERITIES)[number]
export const isLogSeverity = (text: string | undefined): text is LogSeverity =>
  text !== undefined && (LOG_SEVERITIES as readonly string[]).includes(text)

interface Method {
  readonly from: 'client' | 'server' | 'both'
  readonly since: Revision
  readonly until?: Revision // the last revision that has it
  readonly cacheable?: true // a modern result carries ttlMs and cacheScope
  readonly asks?: true // a modern result may be input_required
  readonly named?: 'name' | 'uri' | 'taskId' // the member mirrored in Mcp-Name
  readonly safe?: true // may be sent again when its stream was lost
}

const OLDEST = '2024-11-05'
const NEWEST = '2026-07-28'
const LAST_LEGACY = '2025-11-25'

/** Every method of every revision. Other methods belong to extensions and pass through. */
const METHODS: Readonly<Record<string, Method>> = {
  initialize: { from: 'client', since: OLDEST, until: LAST_LEGACY },
  ping: { from: 'both', since: OLDEST, until: LAST_LEGACY },
  'server/discover': { from: 'client', since: NEWEST, cacheable: true, safe: true },
  'tools/list': { from: 'client', since: OLDEST, cacheable: true, safe: true },
  'tools/call': { from: 'client', since: OLDEST, asks: true, named: 'name' },
  'prompts/list': { from: 'client', since: OLDEST, cacheable: true, safe: true },
  'prompts/get': { from: 'client', since: OLDEST, asks: true, named: 'name', safe: true },
  'resources/list': { from: 'client', since: OLDEST, cacheable: true, safe: true },
  'resources/templates/list': { from: 'client', since: OLDEST, cacheable: true, safe: true },
  'resources/read': { from: 'client', since: OLDEST, cacheable: true, asks: true, named: 'uri', safe: true },
  'resources/subscribe': { from: 'client', since: OLDEST, until: LAST_LEGACY },
  'resources/unsubscribe': { from: 'client', since: OLDEST, until: LAST_LEGACY },
  'subscriptions/listen': { from: 'client', since: NEWEST },
  'completion/complete': { from: 'client', since: OLDEST, safe: true },
  'logging/setLevel': { from: 'client', since: OLDEST, until: LAST_LEGACY },
  'tasks/get': { from: 'both', since: LAST_LEGACY, named: 'taskId', safe: true },
  'tasks/cancel': { from: 'both', since: LAST_LEGACY, named: 'taskId' },
  'tasks/update': { from: 'client', since: NEWEST, named: 'taskId' },
  'tasks/result': { from: 'both', since: LAST_LEGACY, until: LAST_LEGACY },
  'tasks/list': { from: 'both', since: LAST_LEGACY, until: LAST_LEGACY },
  'roots/list': { from: 'server', since: OLDEST },
  'sampling/createMessage': { from: 'server', since: OLDEST },
  'elicitation/create': { from: 'server', since: '2025-06-18' },
}

/** False for a method of the specification that this revision does not have; true for extensions. */
export const isMethodOf = (method: string, revision: Revision): boolean => {
  const info = METHODS[method]
  if (!info || !Object.hasOwn(METHODS, method)) return true
  const at = REVISIONS.indexOf(revision)
  return at >= REVISIONS.indexOf(info.since) && (!info.until || at <= REVISIONS.indexOf(info.until))
}

/** False for requests that only find out what a server has, and whether it is there. */
export const isCall = (method: string): boolean =>
  !(method.endsWith('/list') || method === 'ping' || method === 'server/discover' || method === 'subscriptions/listen')

/** The properties of a method of the specification; undefined for extensions. */
export const methodInfo = (method: string): Method | undefined =>
  Object.hasOwn(METHODS, method) ? METHODS[method] : undefined
