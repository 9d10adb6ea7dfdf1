import type { WorkspaceConfig } from '../config/snapshot.ts'
import { convertResult } from '../eras/convert.ts'
import { deliver, failWith } from '../protocol/deliver.ts'
import type { Caller, Dispatch } from '../protocol/exchange.ts'
import { META, TASKS_EXTENSION } from '../protocol/meta.ts'
import { isModern, SERVED } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import type { CacheEntry } from './catalog/cache-entry.ts'
import { mergeCapabilities } from './catalog/capabilities.ts'
import type { Catalog } from './catalog/catalog.ts'
import type { Discovery } from './catalog/fetch.ts'
import { promisedUntil, remainingTtl } from './catalog/freshness.ts'
import { mentionsAny, mergeInstructions } from './catalog/instructions.ts'
import { type MergedLists, settledWithin } from './catalog/merged-lists.ts'
import { namespacesOf } from './catalog/names.ts'
import type { Member } from './member.ts'

const DISCOVER = 'server/discover'

interface Options {
  readonly config: WorkspaceConfig
  readonly members: readonly Member[]
  readonly catalog: Catalog
  readonly shelves: MergedLists
  readonly identity: Json // who we are
}

interface Known {
  readonly member: Member
  readonly holding: CacheEntry<Discovery>
}

/** Answers `server/discover` for all members together, in time and with whatever is known by then. */
export const createDiscover = (options: Options): Dispatch => {
  const { members, catalog, shelves } = options

  const gather = async (caller: Caller): Promise<Known[]> => {
    const rules = shelves.rulesOf(caller)
    const now = Date.now()
    const all = members
      .filter(({ server }) => rules.allowsServer(server))
      .map(member => ({ member, holding: catalog.introduction(member, caller) }))
    for (const { member, holding } of all)
      if (holding.freshUntil <= now && holding.nextFetchAt <= now && member.isUp())
        void catalog.discover(member, caller)
    const awaited = all.filter(
      ({ member, holding }) =>
        !holding.value && holding.failure === undefined && catalog.slowServers.isWorthWaiting(member, caller),
    )
    await settledWithin(
      awaited.map(({ holding }) => holding.pendingFetch),
      catalog.times.listTimeoutMs,
    )
    for (const { member, holding } of awaited)
      if (!holding.value && holding.pendingFetch) catalog.slowServers.waitedInVain(member, caller)
    return all
  }

  return exchange => {
    const { caller, sink, signal } = exchange
    gather(caller)
      .then(all => {
        const isAlone = options.config.servers.length === 1
        const result = isAlone ? alone(options, caller, all[0]) : together(options, caller, all)
        if (!signal.reason) void deliver(sink, { kind: 'result', result })
      })
      .catch((thrown: unknown) => failWith(exchange, thrown))
  }
}

const inWordsOf = (caller: Caller, { revision, result }: Discovery): Json =>
  convertResult(DISCOVER, result, revision, caller.revision)

/** A single server is shown as it is. */
const alone = (options: Options, caller: Caller, known: Known | undefined): Json => {
  const introduction = known?.holding.value
  if (!introduction) return together(options, caller, known ? [known] : [])
  const { instructions } = options.config
  const { hints } = known.holding
  const told = inWordsOf(caller, introduction)
  const left = hints && told.has('ttlMs') ? remainingTtl(promisedUntil(hints), false, Date.now()) : undefined
  const result = left === undefined ? told : told.with('ttlMs', left)
  return instructions === undefined ? result : result.with('instructions', instructions)
}

const together = ({ config, identity, shelves }: Options, caller: Caller, all: readonly Known[]): Json => {
  const namespaces = namespacesOf(config.servers)
  const told = all.flatMap(({ member, holding }) =>
    holding.value ? { server: member.server, result: inWordsOf(caller, holding.value) } : [],
  )
  const manuals = told.map(({ server, result }) => ({
    namespace: namespaces.get(server) ?? server,
    text: result.get('instructions')?.asString() ?? '',
  }))
  const hints = all.flatMap(({ holding }) => holding.hints ?? [])
  const isLacking = told.length < all.length
  const until = hints.length > 0 ? Math.min(...hints.map(promisedUntil)) : 0
  const capabilities = told.map(({ result }) => withoutTasks(result.get('capabilities') ?? Json.empty))
  return Json.of({
    resultType: 'complete',
    supportedVersions: SERVED,
    capabilities: mergeCapabilities(capabilities, !isModern(caller.revision)),
    instructions: configuredFor(caller, config, shelves) ?? mergeInstructions(manuals, config.names),
    ttlMs: remainingTtl(until, isLacking, Date.now()),
    cacheScope: 'private',
    _meta: { [META.serverInfo]: identity },
  })
}

/** What the operator wrote, unless it names a server that the policy of the caller's token hides. */
const configuredFor = (caller: Caller, config: WorkspaceConfig, shelves: MergedLists): string | undefined => {
  const { instructions, servers } = config
  if (instructions === undefined || !caller.policy) return instructions
  const rules = shelves.rulesOf(caller)
  const namespaces = namespacesOf(servers)
  const hidden = servers.filter(server => !rules.allowsServer(server))
  const names = hidden.flatMap(server => [server, namespaces.get(server) ?? server])
  return mentionsAny(instructions, names) ? undefined : instructions
}

const withoutTasks = (capabilities: Json): Json => {
  const rest = capabilities.get('extensions')?.without(TASKS_EXTENSION)
  if (!rest) return capabilities
  return rest.entries().length > 0 ? capabilities.with('extensions', rest) : capabilities.without('extensions')
}
