import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { decodeLoginState } from '../../protocol/login-state.ts'
import { LOGIN_TOOL } from '../../protocol/login-tool.ts'
import { isModern } from '../../protocol/revisions.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { Json } from '../../wire/json/json.ts'
import { ambiguityError } from '../../wire/json-rpc.ts'
import type { ListItem, MergedList } from '../catalog/merged-list.ts'
import { splitName } from '../catalog/names.ts'
import { callerKey } from '../catalog/provenance.ts'
import type { Member } from '../member.ts'
import { recordHiddenName } from '../policy/denials.ts'
import { changesArguments, withOverlayArguments } from '../policy/overlays.ts'
import { checkCallHeaders, withCallHeaders } from './call-headers.ts'
import { memberSink, retryKey } from './member-frames.ts'
import type { RouteContext } from './route-context.ts'
import { rejectParams, rejectWith } from './send.ts'
import { originalOf, rewriteTexts } from './uris.ts'

type NamedKind = 'tools' | 'prompts'

/** A member that a name may belong to, and the member's own name for it. */
interface NamedTarget {
  readonly member: Member
  readonly original: string
}

const NOUN: Readonly<Record<NamedKind, string>> = { tools: 'tool', prompts: 'prompt' }
const REFETCH_MS = 1000 // between two fetches because of unknown names
const MOST_CALLERS = 1000
const ALIASES = [Buffer.from('"x-mcp-'), Buffer.from('.gw/')]

/** Routes `tools/call` and `prompts/get` by name. */
export const createNamedRoute = (context: RouteContext, kind: NamedKind) => {
  const { lists, provenance } = context
  const refetches = new BoundedCache<{ readonly until: number; readonly done: Promise<unknown> }>(
    MOST_CALLERS,
    REFETCH_MS,
  )

  const route = (exchange: Exchange, name: string, list: MergedList, isRefetched: boolean): void => {
    const found = list.find(name)
    if (found && 'candidates' in found) return chooseCandidate(exchange, name, found.candidates)
    if (found) return forward(exchange, name, found.member, found.original, found)
    const asked = askedTarget(exchange, name) ?? loginTarget(exchange)
    if (asked) return forward(exchange, name, asked.member, asked.original)
    if (!isRefetched) return routeUnknown(exchange, name)
    const target = unlistedTarget(exchange, name)
    if (target) return forward(exchange, name, target.member, target.original)
    const quarantine = kind === 'tools' && quarantineOf(exchange, name)
    if (quarantine) return rejectWith(exchange, quarantine)
    recordHiddenName(context, exchange, name, list)
    rejectParams(exchange, `Unknown ${NOUN[kind]}: ${name}`)
  }

  /** The error for a tool that is not in the list because it waits for an approval, as far as the caller may see it. */
  const quarantineOf = (exchange: Exchange, name: string): RpcError | undefined => {
    const { caller, record } = exchange
    const rules = context.rulesOf(caller)
    const bare = context.members.map(member => ({ member, original: name }))
    for (const { member, original } of [...targetsOf(exchange, name), ...bare]) {
      const error = member.quarantineOf?.(caller, original)
      const isHidden = member.overlays.get(original)?.hidden || !rules.allows('tools', member.server, original)
      if (!error || isHidden) continue
      record?.denied()
      return error
    }
    return undefined
  }

  /** An app calls the tools of its own server by their bare names. */
  const chooseCandidate = (exchange: Exchange, name: string, candidates: readonly ListItem[]): void => {
    const app = provenance.appServerOf(exchange.caller)
    const item = candidates.find(({ member }) => member.server === app)
    if (item) return forward(exchange, name, item.member, item.original, item)
    const names = candidates.map(({ exposed }) => exposed)
    const message = `Several servers have a ${NOUN[kind]} ${name}: call one of ${names.join(', ')}`
    rejectParams(exchange, message, Json.of({ candidates: names }))
  }

  const routeUnknown = (exchange: Exchange, name: string): void => {
    const [target, ...more] = targetsOf(exchange, name)
    if (!target || more.length > 0 || target.member.isUp()) return refetchAndRoute(exchange, name)
    // The server is down and cannot be listed: its own error is the answer, the same for hidden and for visible names.
    context.continueWith(target.member.bridged.open(exchange.caller), exchange, () => refetchAndRoute(exchange, name))
  }

  const refetchAndRoute = (exchange: Exchange, name: string): void => {
    const refetched = refetch(exchange).then(() => lists.get(exchange.caller, kind))
    context.continueWith(refetched, exchange, list => route(exchange, name, list, true))
  }

  /** Callers share a refetch, but never its result: each reads its own list afterwards. */
  const refetch = ({ caller }: Exchange): Promise<unknown> => {
    const key = callerKey(caller) ?? ''
    const before = refetches.get(key)
    if (before && before.until > Date.now()) return before.done
    const done = lists.refetch(caller, kind).catch(() => {}) // the cached list is used then
    refetches.set(key, { until: Date.now() + REFETCH_MS, done })
    return done
  }

  /** The member whose questions a retry answers. */
  const askedTarget = (exchange: Exchange, name: string): NamedTarget | undefined => {
    const retry = retryKey(exchange, exchange.params.get('requestState'))
    const member = retry && context.memberByServer(provenance.serverOf(exchange.caller, retry))
    if (!member) return undefined
    return targetsOf(exchange, name).find(target => target.member === member) ?? { member, original: name }
  }

  /**
   * The member whose login a retry of the tool `login` waits for. The tool may be gone by then, or was listed at another
   * replica. The state is not sealed: whatever it says, the member only tells whether the login is there.
   */
  const loginTarget = ({ caller, params }: Exchange): NamedTarget | undefined => {
    const text = kind === 'tools' && isModern(caller.revision) ? params.get('requestState')?.asString() : undefined
    const state = text === undefined ? undefined : decodeLoginState(text)
    const member = state?.isTool ? context.memberByServer(state.server) : undefined
    const isAllowed = member?.wantsLogins && context.rulesOf(caller).allowsLogin(member.server)
    return isAllowed ? { member, original: LOGIN_TOOL } : undefined
  }

  /** The members that a prefixed name may belong to, as far as the caller may see them. */
  const targetsOf = ({ caller }: Exchange, name: string): readonly NamedTarget[] => {
    const rules = context.rulesOf(caller)
    return splitName(name, context.serversByName).flatMap(({ server, name: original }) => {
      const member = context.memberByServer(server)
      return member && rules.allowsServer(server) ? [{ member, original }] : []
    })
  }

  /**
   * The member that decides about an unlisted name: servers may have more than they list. Undefined where items are hidden:
   * the server's answer would reveal which hidden names exist.
   */
  const unlistedTarget = (exchange: Exchange, name: string): NamedTarget | undefined => {
    if (context.rulesOf(exchange.caller).hides(kind)) return undefined
    const [target, ...more] = targetsOf(exchange, name)
    if (!target || more.length > 0) return undefined
    const hasHidden = kind === 'tools' && [...target.member.overlays.values()].some(({ hidden }) => hidden)
    return hasHidden ? undefined : target
  }

  const forward = (exchange: Exchange, name: string, member: Member, original: string, item?: ListItem): void => {
    const missing = kind === 'tools' && context.missingScopes?.(exchange.caller, member.server, [original])
    if (missing) return rejectWith(exchange, missing)
    const named = name === original ? exchange : { ...exchange, params: exchange.params.with('name', original) }
    const prepared = kind === 'tools' ? prepareCall(context, named, member, original, item) : named
    if ('code' in prepared) return rejectWith(exchange, prepared)
    if (kind === 'tools' && item) context.onCall?.(member.server, original)
    context.send(member, context.isAggregate ? { ...prepared, sink: memberSink(context, exchange, member) } : prepared)
  }

  return (exchange: Exchange): void => {
    const name = exchange.params.get('name')?.asString()
    if (name === undefined) return rejectParams(exchange, '`name` must be a string')
    context.continueWith(lists.get(exchange.caller, kind), exchange, list => route(exchange, name, list, false))
  }
}

/** The call for the server: with the overlay's arguments, with original URIs, and with the headers for both. */
const prepareCall = (
  context: RouteContext,
  exchange: Exchange,
  member: Member,
  original: string,
  item: ListItem | undefined,
): Exchange | RpcError => {
  const { caller, params } = exchange
  const given = params.get('arguments')
  const mismatch = item && checkCallHeaders(caller, item.definition, given ?? Json.empty)
  if (mismatch) return mismatch
  const overlay = member.overlays.get(original)
  const rival = overlay && given?.findAmbiguous([...Object.keys(overlay.fixed), ...Object.keys(overlay.defaults)])
  if (rival) return rpcError('invalidParams', `Invalid arguments: ${ambiguityError(rival)}`)
  const filled = overlay && changesArguments(overlay) ? withOverlayArguments(given ?? Json.empty, overlay) : given
  const args = filled && context.isAggregate ? withOriginalUris(context, member, filled) : filled
  const sender = item && args ? withCallHeaders(caller, item.definition, item.native ?? item.definition, args) : caller
  if (!args || (args === given && sender === caller)) return exchange
  return { ...exchange, caller: sender, params: args === given ? params : params.with('arguments', args) }
}

/** Replaces the aliases of the member's URIs: the member does not know them. */
const withOriginalUris = (context: RouteContext, member: Member, args: Json): Json => {
  const pieces: Buffer[] = []
  args.appendTo(pieces)
  if (!pieces.some(piece => ALIASES.some(alias => piece.includes(alias)))) return args
  return rewriteTexts(args, text => {
    const alias = originalOf(text)
    return alias && context.memberByNamespace(alias.namespace) === member ? alias.uri : undefined
  })
}
