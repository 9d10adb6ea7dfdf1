import { failWith } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Upstream } from '../../protocol/exchange.ts'
import { listItems, sendRequest } from '../../protocol/send-request.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'
import { LIST_KINDS } from '../catalog/list-kinds.ts'
import { mergePages } from '../catalog/merge-pages.ts'
import { withoutServer } from '../catalog/names.ts'
import { createListFaultReport, type OnListFault } from '../catalog/read-list.ts'
import type { Member } from '../member.ts'
import { type ScopeCheck, toolsNamedBy } from '../policy/scopes.ts'
import {
  createSingleServerSubscriptions,
  type SingleServerSubscriptions,
} from '../subscriptions/single-server-subscriptions.ts'
import { rejectWith, sendTo } from './send.ts'
import { createHeaderCheck } from './single-server-headers.ts'

type NamedList = (typeof LIST_KINDS)['tools' | 'prompts']

/** Methods that name an item, and the list that has these names. */
const CALLS: Readonly<Record<string, NamedList>> = {
  'tools/call': LIST_KINDS.tools,
  'prompts/get': LIST_KINDS.prompts,
}
const CALL = 'tools/call'
const LISTEN = 'subscriptions/listen'

interface SingleServerOptions {
  readonly onListFault?: OnListFault | undefined
  readonly missingScopes?: ScopeCheck | undefined // undefined: tools need none
}

/** The workspace of one server without rules. */
export interface SingleServer {
  readonly dispatch: Dispatch
  readonly subscriptions: SingleServerSubscriptions
}

/** The route of a workspace with one server and no rules: forwards every message, and accepts all forms of a name. */
export const createSingleServerRoute = (
  member: Member,
  log: Log,
  { onListFault, missingScopes }: SingleServerOptions = {},
): SingleServer => {
  const { server, bridged: upstream } = member
  const names = createListedNames(upstream)
  const checkHeaders = createHeaderCheck(member)
  const send = mergePages(server, sendTo(upstream, log), createListFaultReport(log, onListFault))
  const subscriptions = createSingleServerSubscriptions(member, names.clear)
  const dispatch: Dispatch = exchange => {
    if (exchange.method === LISTEN && exchange.kind === 'request') return subscriptions.dispatch(exchange)
    const list = Object.hasOwn(CALLS, exchange.method) ? CALLS[exchange.method] : undefined
    const name = list && exchange.params.get('name')?.asString()
    const bare = name === undefined ? undefined : withoutServer(server, name)
    const missing =
      missingScopes && exchange.caller.scopes && missingScopes(exchange.caller, server, toolsIn(exchange, name, bare))
    if (missing) return rejectWith(exchange, missing)
    const checking = exchange.method === CALL && name !== undefined ? checkHeaders(exchange, bare ?? name) : undefined
    if (checking)
      return void checking
        .then(mismatch => (mismatch ? rejectWith(exchange, mismatch) : route(exchange, list, name, bare)))
        .catch((thrown: unknown) => failWith(exchange, thrown))
    route(exchange, list, name, bare)
  }
  const route = (
    exchange: Exchange,
    list: NamedList | undefined,
    name: string | undefined,
    bare: string | undefined,
  ): void => {
    if (!list || name === undefined || bare === undefined) return send(exchange)
    // The name starts with the server's, but the server may itself list it like that.
    void names
      .has(exchange.caller, list, name)
      .then(isListed => send(isListed ? exchange : { ...exchange, params: exchange.params.with('name', bare) }))
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }
  return { dispatch, subscriptions }
}

/** The tools that an exchange may call; undefined: any. */
const toolsIn = (exchange: Exchange, name: string | undefined, bare: string | undefined) => {
  if (exchange.method !== 'tools/call' || name === undefined) return toolsNamedBy(exchange)
  return bare === undefined ? [name] : [name, bare]
}

type Names = Promise<ReadonlySet<string>>

const FRESH_MS = 60_000
const MOST_CALLERS = 1000
const MOST_EACH = 100 // sessions and lists of one principal
const MOST_CHARACTERS = 1024 * 1024 // in the names of one list

/** The names that a server lists, for each caller; fetched when needed and cached for a minute. */
const createListedNames = (upstream: Upstream) => {
  const cache = new BoundedCache<{ readonly names: Names; readonly until: number }>(MOST_CALLERS, FRESH_MS, {
    mostPerGroup: MOST_EACH,
  })

  const namesOf = (caller: Caller, list: NamedList): Names => {
    const isAnonymous = caller.session === undefined && caller.principal === undefined
    if (isAnonymous) return fetchNames(upstream, caller, list) // not even its own calls can be told from those of others
    const key = JSON.stringify([list.method, caller.session, caller.principal])
    const cached = cache.get(key)
    if (cached && cached.until > Date.now()) return cached.names
    const names = fetchNames(upstream, caller, list)
    cache.set(key, { names, until: Date.now() + FRESH_MS }, caller.principal ?? '')
    names.catch(() => cache.delete(key))
    return names
  }

  return {
    /** False if the list cannot be fetched. */
    has: (caller: Caller, list: NamedList, name: string): Promise<boolean> =>
      namesOf(caller, list).then(
        names => names.has(name),
        () => false,
      ),
    clear: (): void => cache.clear(),
  }
}

const fetchNames = async (upstream: Upstream, caller: Caller, { method, member }: NamedList): Names => {
  const names = new Set<string>()
  const page = async (params: Json): Promise<Json> =>
    sendRequest((await upstream.open(caller)).dispatch, caller, method, params)
  let characters = 0
  for await (const item of listItems(member, page)) {
    const name = item.get('name')?.asString() ?? ''
    characters += name.length
    if (characters > MOST_CHARACTERS) break
    names.add(name)
  }
  return names
}
