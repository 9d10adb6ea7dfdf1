import { META } from '../../../src/protocol/meta.ts'
import { FAILURES, INTRODUCTION, NOTICES, QUESTIONS, RESULTS, type Said } from './messages.ts'
import type { Random } from './random.ts'

/** A message of the gateway as a server reads it. */
export interface Heard {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly _meta?: { readonly progressToken?: unknown }; readonly inputResponses?: unknown }
}

/** What a server does about one request: what it says first, its answer, what it says too much. */
export interface Reaction {
  readonly before: readonly object[]
  readonly answer: object
  readonly after: readonly object[]
  readonly isHandshake: boolean
}

const HANDSHAKES: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'ping'])
const CACHEABLE = /\/list$|^resources\/read$|^server\/discover$/

const message = ({ method, params }: Said, id?: unknown): object => ({
  jsonrpc: '2.0',
  ...(id !== undefined && { id }),
  method,
  params,
})

/** Reacts as a server of that era would, with questions, notices, failures and too many answers mixed in. */
export const react = (heard: Heard, isModern: boolean, random: Random): Reaction => {
  const { id, method = '', params } = heard
  const isHandshake = HANDSHAKES.has(method)
  const before: object[] = []
  const after: object[] = []
  const token = params?._meta?.progressToken
  if (token !== undefined)
    for (let progress = 1; progress < 4; progress++)
      before.push(message({ method: 'notifications/progress', params: progressParams(token, progress, random) }))
  if (random.chance(0.3)) before.push(message(random.pick(NOTICES)))
  if (!isModern && !isHandshake && random.chance(0.3)) before.push(message(random.pick(QUESTIONS), random.below(50)))
  const answer = { jsonrpc: '2.0', id, ...outcome(heard, isModern, random) }
  if (random.chance(0.1)) after.push(answer)
  if (random.chance(0.1)) after.push({ jsonrpc: '2.0', id: random.pick([999, 'x', null, -1]), result: {} })
  if (random.chance(0.1)) after.push(message(random.pick(NOTICES)))
  return { before, answer, after, isHandshake }
}

const progressParams = (progressToken: unknown, progress: number, random: Random): Said['params'] => ({
  progressToken,
  progress,
  total: 3,
  message: random.chance(0.05) ? 'x'.repeat(100_000) : 'm',
})

const outcome = ({ method = '', params }: Heard, isModern: boolean, random: Random): object => {
  if (method === 'initialize' && !isModern)
    return { result: { protocolVersion: '2025-11-25', serverInfo: { name: 's', version: '1' }, ...INTRODUCTION } }
  const make = Object.hasOwn(RESULTS, method) ? RESULTS[method] : undefined
  if (method === 'server/discover' && isModern) return { result: complete(method, INTRODUCTION) }
  if (method === 'ping' && !isModern) return { result: {} }
  if (make && random.chance(0.1)) return { error: random.pick(FAILURES) }
  if (!make) return random.chance(0.5) ? { error: { code: -32601, message: 'Method not found' } } : { result: {} }
  if (!isModern) return { result: make() }
  const asks = ['tools/call', 'prompts/get', 'resources/read'].includes(method) && !params?.inputResponses
  return { result: asks && random.chance(0.25) ? question(random) : complete(method, make()) }
}

const question = (random: Random): object => ({
  resultType: 'input_required',
  inputRequests: Object.fromEntries(['k', 'constructor'].map(key => [key, random.pick(QUESTIONS)])),
  requestState: 'state',
})

const complete = (method: string, result: object): object => ({
  resultType: 'complete',
  ...(CACHEABLE.test(method) && { ttlMs: 0, cacheScope: 'private' }),
  ...(method === 'server/discover' && { supportedVersions: ['2026-07-28'] }),
  _meta: { [META.serverInfo]: { name: 's', version: '1' } },
  ...result,
})

/** The acknowledgement of a listen, and what is told on it afterwards. */
export const listenMessages = (heard: Heard, random: Random): object[] => {
  const _meta = { [META.subscriptionId]: heard.id }
  const notifications = { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['test://a'] }
  const told = [random.pick(NOTICES), random.pick(NOTICES)]
  return [
    message({ method: 'notifications/subscriptions/acknowledged', params: { notifications, _meta } }),
    ...told.map(({ method, params }) => message({ method, params: { ...params, _meta } })),
  ]
}
