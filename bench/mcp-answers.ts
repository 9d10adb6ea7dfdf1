import { SCENARIOS, scenario } from './scenarios.ts'

export const MODERN = '2026-07-28'
export const LEGACY = '2025-11-25'
export type Era = 'modern' | 'legacy'

/** A request as the upstreams read it. */
export interface Request {
  readonly id?: string | number
  readonly method: string
  readonly params?: { readonly name?: string; readonly arguments?: { readonly text?: string } }
}

const INFO = { name: 'bench-upstream', version: '1.0.0' }
const CACHE = { ttlMs: 60_000, cacheScope: 'public' }

const schema = { type: 'object', properties: { text: { type: 'string' }, limit: { type: 'number' } } }
const tools = SCENARIOS.map(({ name }) => ({ name, description: `The ${name} scenario`, inputSchema: schema }))
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
  initialize: () => JSON.stringify({ protocolVersion: LEGACY, capabilities: { tools: {} }, serverInfo: INFO }),
  ping: () => '{}',
  'tools/list': era => JSON.stringify(era === 'modern' ? { resultType: 'complete', tools, ...CACHE } : { tools }),
  'tools/call': (era, params) => {
    if (params?.name === 'big') return bigResult[era]
    if (params?.name !== 'echo') return undefined
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
