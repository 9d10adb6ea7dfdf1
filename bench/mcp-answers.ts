import { EVENTS_OF_A_CALL, SCENARIOS, scenario } from './scenarios.ts'

export const MODERN = '2026-07-28'
export const LEGACY = '2025-11-25'
const OLDER = ['2025-06-18', '2025-03-26']
export type Era = 'modern' | 'legacy'

/** A request as the upstreams read it. */
export interface Request {
  readonly id?: string | number
  readonly method: string
  readonly params?: {
    readonly name?: string
    readonly protocolVersion?: string
    readonly arguments?: { readonly text?: string }
    readonly _meta?: { readonly progressToken?: unknown }
  }
}

const INFO = { name: 'bench-upstream', version: '1.0.0' }
const CACHE = { ttlMs: 60_000, cacheScope: 'public' }

const schema = { type: 'object', properties: { text: { type: 'string' }, limit: { type: 'number' } } }
const tools = [...SCENARIOS, scenario('events')].map(({ name }) => ({
  name,
  description: `The ${name} scenario`,
  inputSchema: schema,
}))
const big = JSON.stringify(scenario('big').result)
const bigResult: Readonly<Record<Era, string>> = { modern: `{"resultType":"complete",${big.slice(1)}`, legacy: big }

// Each answers with the JSON text of a result; the big one is rendered once, so that it costs the gateway and not us.
const METHODS: Readonly<Record<string, (era: Era, params: Request['params']) => string | undefined>> = {
  'server/discover': () =>
    JSON.stringify({
      resultType: 'complete',
      supportedVersions: [MODERN],
      capabilities: { tools: {} },
      _meta: { 'io.modelcontextprotocol/serverInfo': INFO },
      ...CACHE,
    }),
  // A server that supports the revision the client asks for answers with it; some gateways know no newer one than 2025-06-18.
  initialize: (_era, params) => {
    const asked = params?.protocolVersion ?? LEGACY
    const protocolVersion = OLDER.includes(asked) ? asked : LEGACY
    return JSON.stringify({ protocolVersion, capabilities: { tools: {} }, serverInfo: INFO })
  },
  ping: () => '{}',
  'tools/list': era => JSON.stringify(era === 'modern' ? { resultType: 'complete', tools, ...CACHE } : { tools }),
  'tools/call': (era, params) => {
    if (params?.name === 'big') return bigResult[era]
    if (params?.name !== 'echo' && params?.name !== 'events') return undefined
    const content = [{ type: 'text', text: params.arguments?.text }]
    return JSON.stringify(era === 'modern' ? { resultType: 'complete', content } : { content })
  },
}

/** The text of the JSON-RPC response to a request, and whether there is such a method. */
export const answerTo = (era: Era, { id, method, params }: Request): { isKnown: boolean; text: string } => {
  const result = METHODS[method]?.(era, params)
  const outcome = result === undefined ? '"error":{"code":-32601,"message":"Method not found"}' : `"result":${result}`
  return { isKnown: result !== undefined, text: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${outcome}}` }
}

/** The texts of the progress notifications that a call asked for. */
export const progressOf = ({ params }: Request): string[] => {
  const progressToken = params?._meta?.progressToken
  if (params?.name !== 'events' || progressToken === undefined) return []
  return Array.from({ length: EVENTS_OF_A_CALL }, (_, at) =>
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken, progress: at + 1, total: EVENTS_OF_A_CALL, message: `step ${at + 1}` },
    }),
  )
}
