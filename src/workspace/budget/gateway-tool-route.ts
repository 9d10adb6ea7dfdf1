import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import { isModern } from '../../protocol/revisions.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { MergedList } from '../catalog/merged-list.ts'
import type { ListView } from '../catalog/merged-lists.ts'
import type { Member } from '../member.ts'
import type { ScopeCheck } from '../policy/scopes.ts'
import { rejectThrown } from '../routing/send.ts'
import { callThrough } from './call-through.ts'
import { DEFAULT_RESULTS, GATEWAY_TOOLS, type GatewayTool, gatewayToolNames, MOST_RESULTS } from './gateway-tools.ts'
import { nearestNames } from './nearest-names.ts'
import type { SearchTools } from './search-tools.ts'
import type { RankByMeaning } from './tool-meaning.ts'
import { writeFoundTools } from './tool-text.ts'

interface GatewayToolOptions {
  readonly lists: ListView
  readonly route: Dispatch // serves every other call
  readonly log: Log
  /** What a server says about itself, if that is known. */
  readonly instructionsOf: (caller: Caller, member: Member) => string | undefined
  readonly missingScopes?: ScopeCheck | undefined
  readonly rankByMeaning?: RankByMeaning | undefined // undefined: words alone rank tools
}

const PREFIX = 'dragoman__' // of a tool whose plain name a server has

const mayBeOwn = (name: string): boolean =>
  (GATEWAY_TOOLS as readonly string[]).includes(name) || name.startsWith(PREFIX)

/** Serves calls of the gateway's own tools in a workspace with a budget or with trimming; passes on all others. */
export const createGatewayToolRoute = (options: GatewayToolOptions): Dispatch => {
  const { lists, route, log } = options
  let loaded: Promise<SearchTools> | undefined
  // Loaded by the first search: most gateways never need it, and what finds stems of words takes time to load.
  const openSearch = (): Promise<SearchTools> => {
    loaded ??= import('./search-tools.ts').then(({ createToolSearch }) => createToolSearch(options.rankByMeaning))
    return loaded
  }
  const answering: AnswerOptions = { ...options, search: openSearch }

  const serve = (exchange: Exchange, name: string, list: MergedList): void | Promise<void> => {
    const tool = gatewayToolNames(list).get(name)
    if (!tool) return route(exchange)
    if (tool === 'call_tool') return callThrough(exchange, list, route)
    return ANSWERS[tool](answering, exchange, list).then(({ text, isError }) => {
      if (!exchange.signal.reason)
        void deliver(exchange.sink, { kind: 'result', result: toolResult(exchange, text, isError) })
    })
  }

  return exchange => {
    const name = exchange.params.get('name')?.asString()
    if (name === undefined || !mayBeOwn(name)) return route(exchange)
    const list = lists.get(exchange.caller, 'tools')
    const served =
      list instanceof Promise ? list.then(made => serve(exchange, name, made)) : serve(exchange, name, list)
    served?.catch((thrown: unknown) => rejectThrown(exchange, thrown, log))
  }
}

interface ToolAnswer {
  readonly text: string
  readonly isError?: boolean
}

type AnswerTool = (options: AnswerOptions, exchange: Exchange, list: MergedList) => Promise<ToolAnswer>

interface AnswerOptions extends GatewayToolOptions {
  readonly search: () => Promise<SearchTools>
}

/** An error of these tools is a result: models see it, and can correct the call. */
const wrong = (text: string): ToolAnswer => ({ text, isError: true })

const search: AnswerTool = async ({ search: open, instructionsOf, missingScopes }, { caller, params }, list) => {
  const args = params.get('arguments')
  const [query, limit] = [args?.get('query'), args?.get('limit')]
  const most = limit ? limit.asNumber() : DEFAULT_RESULTS
  if (query && query.kind !== 'string') return wrong('`query` must be a string')
  if (most === undefined || !Number.isInteger(most) || most < 1)
    return wrong(`\`limit\` must be a whole number from 1 to ${MOST_RESULTS}`)
  const searchTools = await open()
  const about = (member: Member) => instructionsOf(caller, member)
  const found = await searchTools(list, query?.asString() ?? '', { limit: Math.min(most, MOST_RESULTS), about })
  return { text: writeFoundTools(list, found, item => missingScopes?.(caller, item.member.server, [item.original])) }
}

const describe: AnswerTool = async (_options, { params }, list) => {
  const name = params.at('arguments', 'name')?.asString()
  if (name === undefined) return wrong('`name` must be the name of a tool')
  const found = list.find(name)
  if (found && !('candidates' in found)) return { text: found.whole.toString() }
  if (found)
    return wrong(
      `Several servers have a tool ${name}: name one of ${found.candidates.map(({ exposed }) => exposed).join(', ')}`,
    )
  const near = nearestNames(list, name)
  return wrong(
    `Unknown tool: ${name}. ${near.length > 0 ? `Did you mean ${near.join(', ')}?` : 'Find one with search_tools'}`,
  )
}

const ANSWERS: Readonly<Record<Exclude<GatewayTool, 'call_tool'>, AnswerTool>> = {
  search_tools: search,
  describe_tool: describe,
}

const toolResult = ({ caller }: Exchange, text: string, isError = false): Json => {
  const result = Json.of({ content: [{ type: 'text', text }], ...(isError && { isError }) })
  return isModern(caller.revision) ? result.with('resultType', 'complete') : result
}
