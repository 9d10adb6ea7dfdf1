import { rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { Json } from '../../wire/json/json.ts'
import { ambiguous } from '../../wire/json-rpc.ts'
import { callerKey } from '../catalog/provenance.ts'
import type { AmbiguousName, MergedList, ShownItem } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { callWith, changesArguments } from '../policy/overlays.ts'
import { splitName } from './finder.ts'
import { checkCallHeaders, withCallHeaders } from './param-check.ts'
import { type RouteContext, rejectParams, rejectWith } from './route-context.ts'
import { memberSink } from './route-frames.ts'
import { originalOf, rewriteTexts } from './uris.ts'

type Named = 'tools' | 'prompts'

/** Whose a name may be, and what it is called there. */
interface Owner {
  readonly member: Member
  readonly original: string
}

const WORD: Readonly<Record<Named, string>> = { tools: 'tool', prompts: 'prompt' }
const AGAIN_MS = 1000 // between two looks for names that nobody has
const MOST_LOOKS = 1000
const ALIASES = [Buffer.from('"x-mcp-'), Buffer.from('.gw/')]

/** Routes what is called by its name: tools and prompts. */
export const createNamedRoute = (context: RouteContext, kind: Named) => {
  const { lists: shelves, provenance } = context
  const looks = new BoundedCache<{ readonly until: number; readonly done: Promise<unknown> }>(MOST_LOOKS, AGAIN_MS)

  const unknown = (exchange: Exchange, name: string): void => rejectParams(exchange, `Unknown ${WORD[kind]}: ${name}`)

  const decide = (exchange: Exchange, name: string, shelf: MergedList, isLast: boolean): void => {
    const found = shelf.find(name)
    if (found && 'candidates' in found) return choose(exchange, name, found)
    if (found) return deliver(exchange, name, found.member, found.original, found)
    if (!isLast) return miss(exchange, name)
    const member = unlisted(exchange, name)
    if (member) deliver(exchange, name, member.member, member.original)
    else unknown(exchange, name)
  }

  /** An app calls the tools of its own server by their own names. */
  const choose = (exchange: Exchange, name: string, { candidates }: AmbiguousName): void => {
    const app = provenance.appMember(exchange.caller)
    const entry = candidates.find(({ member }) => member === app)
    if (entry) return deliver(exchange, name, entry.member, entry.original, entry)
    const names = candidates.map(({ exposed }) => exposed)
    rejectParams(
      exchange,
      `Several servers have a ${WORD[kind]} ${name}: call one of ${names.join(', ')}`,
      Json.of({ candidates: names }),
    )
  }

  const miss = (exchange: Exchange, name: string): void => {
    const [owner, ...more] = ownersOf(exchange, name)
    if (!owner || more.length > 0 || owner.member.isUp()) return lookAgain(exchange, name)
    // Its list cannot be asked for, so what it says of itself is the answer, the same for what is hidden and what is not.
    context.when(owner.member.bridged.open(exchange.caller), exchange, () => lookAgain(exchange, name))
  }

  const lookAgain = (exchange: Exchange, name: string): void => {
    const looked = look(exchange).then(() => shelves.get(exchange.caller, kind))
    context.when(looked, exchange, shelf => decide(exchange, name, shelf, true))
  }

  /** Nobody shares what another caller was shown: only the looking is shared. */
  const look = ({ caller }: Exchange): Promise<unknown> => {
    const who = callerKey(caller) ?? ''
    const before = looks.get(who)
    if (before && before.until > Date.now()) return before.done
    const done = shelves.refetch(caller, kind).catch(() => {}) // what is known will do
    looks.set(who, { until: Date.now() + AGAIN_MS, done })
    return done
  }

  /** The members that a name can be of by its form, as far as this caller may know of them. */
  const ownersOf = ({ caller }: Exchange, name: string): readonly Owner[] => {
    const rules = context.rulesOf(caller)
    return splitName(name, context.serversByName).flatMap(({ server, name: original }) => {
      const member = context.member(server)
      return member && rules.allowsServer(server) ? [{ member, original }] : []
    })
  }

  /**
   * Servers may have more than they list: such a name is for its owner to judge. Not where something is hidden, for then
   * the answer would tell what is there and hidden from what is not there.
   */
  const unlisted = (exchange: Exchange, name: string): Owner | undefined => {
    if (context.rulesOf(exchange.caller).hides(kind)) return undefined
    const [owner, ...more] = ownersOf(exchange, name)
    if (!owner || more.length > 0) return undefined
    const hides = kind === 'tools' && [...owner.member.overlays.values()].some(({ hidden }) => hidden)
    return hides ? undefined : owner
  }

  const deliver = (exchange: Exchange, name: string, member: Member, original: string, entry?: ShownItem): void => {
    const named = name === original ? exchange : { ...exchange, params: exchange.params.with('name', original) }
    const prepared = kind === 'tools' ? prepare(context, named, member, original, entry) : named
    if ('code' in prepared) return rejectWith(exchange, prepared)
    context.send(member, context.isAggregate ? { ...prepared, sink: memberSink(context, exchange, member) } : prepared)
  }

  return (exchange: Exchange): void => {
    const name = exchange.params.get('name')?.asString()
    if (name === undefined) return rejectParams(exchange, '`name` must be a string')
    context.when(shelves.get(exchange.caller, kind), exchange, shelf => decide(exchange, name, shelf, false))
  }
}

/** The call as the server gets it: overlaid arguments, its own URIs, and the headers that belong to both. */
const prepare = (
  context: RouteContext,
  exchange: Exchange,
  member: Member,
  original: string,
  entry: ShownItem | undefined,
) => {
  const { caller, params } = exchange
  const given = params.get('arguments')
  const wrong = entry && checkCallHeaders(caller, entry.definition, given ?? Json.empty)
  if (wrong) return wrong
  const overlay = member.overlays.get(original)
  const rival = overlay && given?.rivalOf([...Object.keys(overlay.fixed), ...Object.keys(overlay.defaults)])
  if (rival) return rpcError('invalidParams', `Invalid arguments: ${ambiguous(rival)}`)
  const filled = overlay && changesArguments(overlay) ? callWith(given ?? Json.empty, overlay) : given
  const args = filled && context.isAggregate ? ownUris(context, member, filled) : filled
  const sender =
    entry && args ? withCallHeaders(caller, entry.definition, entry.native ?? entry.definition, args) : caller
  if (!args || (args === given && sender === caller)) return exchange
  return { ...exchange, caller: sender, params: args === given ? params : params.with('arguments', args) }
}

/** A member knows nothing of the aliases of its URIs. */
const ownUris = (context: RouteContext, member: Member, args: Json): Json => {
  const pieces: Buffer[] = []
  args.appendTo(pieces)
  if (!pieces.some(piece => ALIASES.some(alias => piece.includes(alias)))) return args
  return rewriteTexts(args, text => {
    const alias = originalOf(text)
    return alias && context.memberByNamespace(alias.ns) === member ? alias.uri : undefined
  })
}
