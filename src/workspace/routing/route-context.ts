import type { WorkspaceConfig } from '../../config/snapshot.ts'
import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json } from '../../wire/json/json.ts'
import { namespacesOf } from '../catalog/names.ts'
import {
  createProvenance,
  createProvenanceStore,
  type Provenance,
  type ProvenanceStore,
} from '../catalog/provenance.ts'
import type { ListView } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { createRulesOf, type PolicyRules } from '../policy/policy.ts'
import { serversByName } from './finder.ts'
import { asRpcError, sendTo } from './route.ts'

/** What routing needs besides the members and their lists. */
export interface RouteDeps {
  readonly config: WorkspaceConfig
  readonly log: Log
  /** What a member says it can do, as far as that is known. */
  readonly capabilities: (caller: Caller, member: Member) => Json | undefined
  readonly provenanceStore?: ProvenanceStore | undefined // of what came from whom; undefined: nothing is known yet
}

/** What all the routes of a workspace share. */
export interface RouteContext extends RouteDeps {
  readonly members: readonly Member[]
  readonly lists: ListView
  readonly isAggregate: boolean // several servers: callers must be told whose words they hear
  readonly provenance: Provenance
  readonly serversByName: ReadonlyMap<string, string> // servers by what may stand for them in a name
  rulesOf(caller: Caller): PolicyRules
  member(server: string | undefined): Member | undefined
  memberByNamespace(namespace: string): Member | undefined
  namespaceOf(member: Member): string
  /** Hands an exchange to one member as it is. */
  send(memberByServer: Member, exchange: Exchange): void
  /** Goes on with something that may have to be waited for; what is thrown there is the answer. */
  when<T>(value: T | Promise<T>, exchange: Exchange, then: (value: T) => void): void
}

export const createRouteContext = (members: readonly Member[], shelves: ListView, deps: RouteDeps): RouteContext => {
  const { config, log, provenanceStore: memory = createProvenanceStore() } = deps
  const byServer = new Map(members.map(member => [member.server, member]))
  const senders = new Map<Member, Dispatch>(members.map(member => [member, sendTo(member.bridged, log)]))
  const namespaces = namespacesOf(config.servers)
  const servers = new Map([...namespaces].map(([server, namespace]) => [namespace, server]))
  const memberOf = (server: string | undefined): Member | undefined => byServer.get(server ?? '')
  const provenance = createProvenance(memory, memberOf)

  const send = (member: Member, exchange: Exchange): void => {
    const { session, capabilities } = exchange.caller
    if (session !== undefined && capabilities.has('roots')) provenance.recordSession(session, member)
    senders.get(member)?.(exchange)
  }

  return {
    ...deps,
    members,
    lists: shelves,
    isAggregate: config.servers.length > 1,
    provenance,
    serversByName: serversByName(config.servers),
    rulesOf: createRulesOf(config.policy),
    member: memberOf,
    memberByNamespace: namespace => memberOf(servers.get(namespace)),
    namespaceOf: ({ server }) => namespaces.get(server) ?? server,
    send,
    when: (value, exchange, then) => {
      if (!(value instanceof Promise)) return then(value)
      value
        .then(found => {
          if (!exchange.signal.reason) then(found)
        })
        .catch((error: unknown) => void rejectWith(exchange, asRpcError(error, log)))
    },
  }
}

/** Ends an exchange with an error. */
export const rejectWith = (exchange: Exchange, error: RpcError): void => {
  if (exchange.kind === 'request') void deliver(exchange.sink, { kind: 'failure', error })
}

export const rejectParams = (exchange: Exchange, message: string, data?: Json): void =>
  rejectWith(exchange, rpcError('invalidParams', message, data))
