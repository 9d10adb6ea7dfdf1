import type { WorkspaceConfig } from '../config/snapshot.ts'
import { convertResult } from '../eras/convert.ts'
import { deliver, failWith } from '../protocol/deliver.ts'
import type { Caller, Dispatch } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { isModern, SERVED } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import type { CachedOf, Catalog } from './catalog/catalog.ts'
import type { Discovery } from './catalog/fetch.ts'
import { promisedUntil, remainingTtl } from './catalog/freshness.ts'
import type { MergedLists } from './catalog/merged-lists.ts'
import { namespacesOf } from './catalog/names.ts'
import type { Member } from './member.ts'
import { mentionsAny, mergeCapabilities, mergeInstructions } from './merge-discovery.ts'

interface DiscoverOptions {
  readonly config: WorkspaceConfig
  readonly members: readonly Member[]
  readonly catalog: Catalog
  readonly lists: MergedLists
  readonly identity: Json // name and version of the gateway
}

type CachedDiscovery = CachedOf<Discovery>

/** Answers `server/discover` for all members together, with what they have answered before the timeout. */
export const createDiscover = (options: DiscoverOptions): Dispatch => {
  const { members, catalog, lists } = options

  const gather = async (caller: Caller): Promise<CachedDiscovery[]> => {
    const rules = lists.rulesOf(caller)
    const now = Date.now()
    const all = members
      .filter(({ server }) => rules.allowsServer(server))
      .map(member => ({ member, entry: catalog.discovery(member, caller) }))
    for (const each of all)
      if (each.entry.isDue(now) && each.member.isUp())
        catalog.fetchBehind(each, caller, () => catalog.discover(each.member, caller))
    await catalog.waitForFirst(all, caller)
    return all
  }

  return exchange => {
    const { caller, sink, signal } = exchange
    gather(caller)
      .then(all => {
        const isSingle = options.config.servers.length === 1
        const result = isSingle ? singleResult(options, caller, all[0]) : mergedResult(options, caller, all)
        if (!signal.reason) void deliver(sink, { kind: 'result', result })
      })
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }
}

const convertFor = (caller: Caller, { revision, result }: Discovery): Json =>
  convertResult('server/discover', result, revision, caller.revision)

/** A single server is shown as it is. */
const singleResult = (options: DiscoverOptions, caller: Caller, cached: CachedDiscovery | undefined): Json => {
  const discovery = cached?.entry.value
  if (!discovery) return mergedResult(options, caller, cached ? [cached] : [])
  const { instructions } = options.config
  const { hints } = cached.entry
  const converted = convertFor(caller, discovery)
  const ttlMs = hints && converted.has('ttlMs') ? remainingTtl(promisedUntil(hints), false, Date.now()) : undefined
  const timed = ttlMs === undefined ? converted : converted.with('ttlMs', ttlMs)
  const result = options.config.budget ? withToolChanges(timed) : timed
  return instructions === undefined ? result : result.with('instructions', instructions)
}

/** A list with favourites may change although its server announces no changes. */
const withToolChanges = (result: Json): Json => {
  const capabilities = result.get('capabilities')
  const tools = capabilities?.get('tools')
  if (!capabilities || !tools?.isObject) return result
  return result.with('capabilities', capabilities.with('tools', tools.with('listChanged', true)))
}

const mergedResult = (options: DiscoverOptions, caller: Caller, all: readonly CachedDiscovery[]): Json => {
  const { config, identity } = options
  const namespaces = namespacesOf(config.servers)
  const known = all.flatMap(({ member, entry }) =>
    entry.value ? { server: member.server, result: convertFor(caller, entry.value) } : [],
  )
  const instructions = known.map(({ server, result }) => ({
    namespace: namespaces.get(server) ?? server,
    text: result.get('instructions')?.asString() ?? '',
  }))
  const hints = all.flatMap(({ entry }) => entry.hints ?? [])
  const until = hints.length > 0 ? Math.min(...hints.map(promisedUntil)) : 0
  const capabilities = known.map(({ result }) => result.get('capabilities') ?? Json.empty)
  return Json.of({
    resultType: 'complete',
    supportedVersions: SERVED,
    capabilities: mergeCapabilities(capabilities, !isModern(caller.revision)),
    instructions: configuredInstructions(options, caller) ?? mergeInstructions(instructions, config.names),
    ttlMs: remainingTtl(until, known.length < all.length, Date.now()),
    cacheScope: 'private',
    _meta: { [META.serverInfo]: identity },
  })
}

/** The configured instructions, unless they name a server that the policy of the caller's token hides. */
const configuredInstructions = ({ config, lists }: DiscoverOptions, caller: Caller): string | undefined => {
  const { instructions, servers } = config
  if (instructions === undefined || !caller.policy) return instructions
  const rules = lists.rulesOf(caller)
  const namespaces = namespacesOf(servers)
  const hidden = servers.filter(server => !rules.allowsServer(server))
  const names = hidden.flatMap(server => [server, namespaces.get(server) ?? server])
  return mentionsAny(instructions, names) ? undefined : instructions
}
