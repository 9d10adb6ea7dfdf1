import type { WorkspaceConfig } from '../../config/snapshot.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'
import type { ListView } from '../catalog/merged-lists.ts'
import { namespacesOf, serversByName } from '../catalog/names.ts'
import { Provenance } from '../catalog/provenance.ts'
import type { Member } from '../member.ts'
import { createRulesOf, type PolicyRules } from '../policy/policy.ts'
import type { ScopeCheck } from '../policy/scopes.ts'
import { rejectThrown, sendTo } from './send.ts'

/** What routes need besides the members and their lists. */
export interface RouteDeps {
  readonly config: WorkspaceConfig
  readonly log: Log
  /** The capabilities of a member, if they are known. */
  readonly capabilities: (caller: Caller, member: Member) => Json | undefined
  readonly provenance?: Provenance | undefined // of the workspace that this one replaces
  readonly missingScopes?: ScopeCheck | undefined // undefined: tools need none
  /** The server that a task of a caller belongs to; undefined: there are no tasks. */
  readonly serverOfTask?: ((caller: Caller, taskId: string) => string | undefined) | undefined
  readonly onCall?: ((server: string, tool: string) => void) | undefined // a tool is called by a client
}

/** What all routes of a workspace share. */
export interface RouteContext extends RouteDeps {
  readonly members: readonly Member[]
  readonly lists: ListView
  readonly isAggregate: boolean // several servers: callers must see which server speaks
  readonly provenance: Provenance
  readonly serversByName: ReadonlyMap<string, string>
  rulesOf(caller: Caller): PolicyRules
  memberByServer(server: string | undefined): Member | undefined
  memberByNamespace(namespace: string): Member | undefined
  namespaceOf(member: Member): string
  send(member: Member, exchange: Exchange): void
  /** Continues with a value that may be pending; a rejection fails the exchange. */
  continueWith<T>(value: T | Promise<T>, exchange: Exchange, next: (value: T) => void): void
}

export const createRouteContext = (members: readonly Member[], lists: ListView, deps: RouteDeps): RouteContext => {
  const { config, log, provenance = new Provenance() } = deps
  const byServer = new Map(members.map(member => [member.server, member]))
  const senders = new Map<Member, Dispatch>(members.map(member => [member, sendTo(member.bridged, log)]))
  const namespaces = namespacesOf(config.servers)
  const servers = new Map([...namespaces].map(([server, namespace]) => [namespace, server]))
  const memberByServer = (server: string | undefined): Member | undefined => byServer.get(server ?? '')

  return {
    ...deps,
    members,
    lists,
    isAggregate: config.servers.length > 1,
    provenance,
    serversByName: serversByName(config.servers),
    rulesOf: createRulesOf(config.policy),
    memberByServer,
    memberByNamespace: namespace => memberByServer(servers.get(namespace)),
    namespaceOf: ({ server }) => namespaces.get(server) ?? server,
    send: (member, exchange) => {
      const { session, capabilities } = exchange.caller
      if (session !== undefined && capabilities.has('roots')) provenance.recordSession(session, member.server)
      senders.get(member)?.(exchange)
    },
    continueWith: (value, exchange, next) => {
      if (!(value instanceof Promise)) return next(value)
      value
        .then(found => {
          if (!exchange.signal.reason) next(found)
        })
        .catch((error: unknown) => rejectThrown(exchange, error, log))
    },
  }
}
