import type { Caller, Exchange, Frame, Question, Sink } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Json } from '../../wire/json/json.ts'
import type { MergedList } from '../catalog/merged-list.ts'
import type { Member } from '../member.ts'
import type { RouteContext } from './route-context.ts'
import { aliasFor, type RenameUri, rewriteUris } from './uris.ts'

const URI = Buffer.from('"uri"')
const ELICITATION = 'elicitation/create'

/** The sink for one of several members: adds the server's name to questions, records links, and replaces URIs by aliases. */
export const memberSink =
  (context: RouteContext, exchange: Exchange, member: Member): Sink =>
  frame =>
    exchange.sink(rewriteFrame(context, exchange, member, frame))

const rewriteFrame = (context: RouteContext, exchange: Exchange, member: Member, frame: Frame): Frame => {
  switch (frame.kind) {
    case 'result':
      return { kind: 'result', result: rewriteResult(context, exchange, member, frame.result) }
    case 'question':
      return withServerName(frame, member.server)
    case 'notice': {
      if (frame.method !== NOTIFICATIONS.resourceUpdated) return frame
      const rename = shownUriFor(context, exchange.caller, member)
      return { ...frame, params: rewriteUris(frame.method, frame.params, rename) }
    }
    case 'failure':
      return frame
  }
}

const rewriteResult = (context: RouteContext, exchange: Exchange, member: Member, answer: Json): Json => {
  const { provenance } = context
  const { caller, method } = exchange
  const result = withServerNames(answer, member.server)
  const retry = result === answer ? undefined : retryKey(exchange, result.get('requestState'))
  if (retry !== undefined) provenance.record(caller, retry, member.server)
  const content = result.get('content') ?? result.get('messages')
  const meta = result.get('_meta')
  const isOfApp = meta?.has('ui') || meta?.has('ui/resourceUri')
  if (!isOfApp && !(content && mayContainUri(content))) return result
  const rename = shownUriFor(context, caller, member)
  return rewriteUris(method, result, uri => {
    const alias = rename(uri)
    if (alias === undefined) provenance.record(caller, uri, member.server)
    return alias
  })
}

/**
 * The reference of a call that waits for answers: its retry belongs to the server that asked, also if the tool is no longer
 * listed by then, as that of a login. It is that of the name, too, so that no state leads to a hidden tool.
 */
export const retryKey = ({ params }: Exchange, state: Json | undefined): string | undefined => {
  const text = state?.asString()
  return text === undefined ? undefined : `retry ${params.get('name')?.asString()} ${text}`
}

/** Searches the bytes without parsing them. */
const mayContainUri = (json: Json): boolean => {
  const pieces: Buffer[] = []
  json.appendTo(pieces)
  return pieces.some(piece => piece.includes(URI))
}

type Aliases = ReadonlyMap<string, ReadonlyMap<string, string>>
const aliasesByList = new WeakMap<MergedList, Aliases>()

/** By server, the URIs that the list shows as aliases; computed once for each list. */
export const uriAliasesOf = (list: MergedList): Aliases => {
  const known = aliasesByList.get(list)
  if (known) return known
  const aliases = new Map<string, Map<string, string>>()
  for (const { member, original, exposed } of list.items) {
    if (original === exposed) continue
    const ofServer = aliases.get(member.server) ?? new Map<string, string>()
    aliases.set(member.server, ofServer.set(original, exposed))
  }
  aliasesByList.set(list, aliases)
  return aliases
}

/** Whether a caller knows some URIs of a member by an alias. */
export const hasAliases = ({ lists }: RouteContext, caller: Caller, { server }: Member): boolean => {
  const list = lists.cached(caller, 'resources')
  return list !== undefined && uriAliasesOf(list).has(server)
}

/** Makes the function that replaces a member's URIs by the aliases that a caller knows them by, as far as lists are cached. */
export const shownUriFor = (context: RouteContext, caller: Caller, member: Member): RenameUri => {
  const list = context.lists.cached(caller, 'resources')
  const aliases = list && uriAliasesOf(list).get(member.server)
  return uri => {
    const alias = aliases?.get(uri)
    if (alias !== undefined) return alias
    const found = list?.find(uri)
    // Another member exposes this URI as its own.
    const isOfOther = found && 'member' in found && found.member !== member
    return isOfOther ? aliasFor(context.namespaceOf(member), uri) : undefined
  }
}

/** Adds the server's name to an elicitation: its reader sees the gateway as the only server. */
export const withServerName = (question: Question, server: string): Question =>
  question.method === ELICITATION ? { ...question, params: nameServer(question.params, server) } : question

/** Adds the server's name to the elicitations in an `input_required` result. */
export const withServerNames = (result: Json, server: string): Json => {
  const requests = result.get('resultType')?.isString('input_required') ? result.get('inputRequests') : undefined
  if (!requests?.isObject) return result
  const named = requests.entries().reduce((all, [key, request]) => {
    const params = request.get('method')?.isString(ELICITATION) ? request.get('params') : undefined
    return params?.isObject ? all.with(key, request.with('params', nameServer(params, server))) : all
  }, requests)
  return result.with('inputRequests', named)
}

const nameServer = (params: Json, server: string): Json => {
  const message = params.get('message')?.asString()
  return message === undefined ? params : params.with('message', `[${server}] ${message}`)
}
