import type { Overlay, WorkspaceConfig } from '../../src/config/snapshot.ts'
import { rpcError } from '../../src/protocol/errors.ts'
import type { Caller, Exchange, Upstream } from '../../src/protocol/exchange.ts'
import { EVERYTHING } from '../../src/protocol/policy.ts'
import { MODERN } from '../../src/protocol/revisions.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { Json, type Plain, type PlainObject } from '../../src/wire/json/json.ts'
import { LIST_KINDS, type ListKind } from '../../src/workspace/catalog/list-kinds.ts'
import { createMemberList, type MemberList } from '../../src/workspace/catalog/member-list.ts'
import { buildMergedList, type MergedList } from '../../src/workspace/catalog/merged-list.ts'
import type { Member } from '../../src/workspace/member.ts'
import { createPolicy } from '../../src/workspace/policy/policy.ts'
import type { RouteDeps } from '../../src/workspace/routing/route-context.ts'
import { createRoutes } from '../../src/workspace/routing/routes.ts'
import { type Talk, type TalkOptions, talk } from './embedded.ts'

/** What a member of the test has, and what it answers. */
export interface Script {
  readonly lists?: Partial<Record<ListKind, readonly PlainObject[]>>
  readonly answer?: (exchange: Exchange) => void
  readonly open?: () => Promise<void>
  readonly isDown?: boolean
  readonly wantsLogins?: boolean
  readonly capabilities?: PlainObject
  readonly overlays?: Readonly<Record<string, Partial<Overlay>>>
}

/** Members of a test behind the routes of a workspace; their lists are known at once unless `isCold`. */
export const routed = (
  scripts: Readonly<Record<string, Script>>,
  over: Partial<WorkspaceConfig> = {},
  deps: Pick<RouteDeps, 'serverOfTask'> = {},
) => {
  const arrivals: { readonly server: string; readonly exchange: Exchange }[] = []
  const looks: ListKind[] = []
  const servers = Object.keys(scripts)
  const config: WorkspaceConfig = {
    name: 'default',
    servers,
    names: 'prefix',
    strict: false,
    policy: EVERYTHING,
    overlays: new Map(),
    ...over,
  }
  const members = servers.map(server =>
    memberOf(server, scripts[server] ?? {}, exchange => arrivals.push({ server, exchange })),
  )
  const lists = listViewOf(members, scripts, config, looks)
  const { dispatch, locate } = createRoutes(members, lists, {
    config,
    log: SILENT,
    ...deps,
    capabilities: (_, { server }) =>
      scripts[server]?.capabilities ? Json.of(scripts[server].capabilities) : undefined,
  })
  const upstream: Upstream = {
    open: async ({ revision }) => ({ revision, asks: true, dispatch }),
    close: async () => {},
  }
  const say = (method: string, params: PlainObject | Json, options: TalkOptions = {}): Promise<Talk> =>
    talk(upstream, method, params, { ...options, caller: { principal: 'ada', ...options.caller } })
  /** Whom a request reached last, and as what. */
  const last = () => {
    const found = arrivals.at(-1)
    return found && { server: found.server, method: found.exchange.method, params: found.exchange.params.toValue() }
  }
  return { say, last, arrivals, looks, members, locate, dispatch, scripts }
}

const memberOf = (server: string, script: Script, arrived: (exchange: Exchange) => void): Member => {
  const upstream: Upstream = {
    open: async ({ revision }: Caller) => {
      await script.open?.()
      return {
        revision,
        asks: true,
        dispatch: exchange => {
          arrived(exchange)
          if (script.answer) script.answer(exchange)
          else void exchange.sink({ kind: 'result', result: Json.empty })
        },
      }
    },
    close: async () => {},
  }
  const overlays = Object.entries(script.overlays ?? {}).map(
    ([name, overlay]) => [name, { hidden: false, fixed: {}, defaults: {}, ...overlay }] as const,
  )
  return {
    server,
    bridged: upstream,
    native: upstream,
    isRemote: true,
    wantsLogins: script.wantsLogins,
    isProcess: false,
    overlays: new Map(overlays),
    isUp: () => !script.isDown,
  }
}

/** Lists are read again only by `refetch`, like a catalog that has received no change notification. */
const listViewOf = (
  members: readonly Member[],
  scripts: Readonly<Record<string, Script>>,
  config: WorkspaceConfig,
  looks: ListKind[],
) => {
  const lists = new Map<string, MemberList>()
  const read = (kind: ListKind): void => {
    for (const { server } of members) lists.set(`${kind} ${server}`, listOf(kind, scripts[server]?.lists?.[kind] ?? []))
  }
  for (const kind of Object.keys(LIST_KINDS) as ListKind[]) read(kind)
  const known = new Map<string, MergedList>()
  const get = (caller: Caller, kind: ListKind): MergedList => {
    const key = [kind, caller.revision, JSON.stringify(caller.policy)].join()
    const list =
      known.get(key) ??
      buildMergedList(
        members.map(member => ({ member, list: lists.get(`${kind} ${member.server}`) })),
        {
          kind,
          revision: caller.revision,
          style: config.names,
          servers: config.servers,
          rules: createPolicy(config.policy, ...(caller.policy ? [caller.policy] : [])),
        },
      )
    known.set(key, list)
    return list
  }
  return {
    get,
    cached: get,
    refetch: async (caller: Caller, kind: ListKind) => {
      looks.push(kind)
      read(kind)
      known.clear()
      return get(caller, kind)
    },
  }
}

const listOf = (kind: ListKind, items: readonly PlainObject[]): MemberList =>
  createMemberList(kind, MODERN, {
    items: items.map(item => {
      const json = Json.of(item)
      return { original: json.get(LIST_KINDS[kind].key)?.asString() ?? '', native: json, shown: json }
    }),
  })

/** Answers with a result, or with an error for what it does not have. */
export const has =
  (...uris: readonly string[]) =>
  ({ params, sink }: Exchange): void => {
    const uri = params.get('uri')?.asString() ?? ''
    if (uris.includes(uri)) void sink({ kind: 'result', result: Json.of({ contents: [{ uri, text: 'content' }] }) })
    else void sink({ kind: 'failure', error: rpcError('invalidParams', 'no such resource', Json.of({ uri })) })
  }

export const gives =
  (result: Plain) =>
  ({ sink }: Exchange): void =>
    void sink({ kind: 'result', result: Json.of(result) })
