import { convertError } from '../../eras/convert.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { closestTemplate, compileTemplate, type TemplateMatcher } from '../../protocol/uri-template.ts'
import { Json } from '../../wire/json/json.ts'
import type { MergedList } from '../catalog/merged-list.ts'
import type { Member } from '../member.ts'
import { recordHiddenUri } from '../policy/denials.ts'
import { hasAliases, shownUriFor, withServerName, withServerNames } from './member-frames.ts'
import { createResourceProbe } from './resource-probe.ts'
import type { RouteContext } from './route-context.ts'
import { rejectParams, rejectWith } from './send.ts'
import { originalOf, rewriteUris } from './uris.ts'

/** The member that has a resource, and the member's URI of it. */
export interface ResourceLocation {
  readonly member: Member
  readonly uri: string
}

const READ = 'resources/read'
const APP = 'ui://'

/** Routes reads and subscriptions by URI. */
export const createResourceRoute = (context: RouteContext, locate: LocateResource) => {
  const rejectUnknown = (exchange: Exchange, uri: string): void => {
    recordHiddenUri(context, exchange, uri)
    rejectUnknownResource(exchange, uri)
  }
  const probe = createResourceProbe(context, rejectUnknown)

  const route = (exchange: Exchange, asked: string, location: ResourceLocation | undefined): void => {
    if (!location && isAlias(context, asked)) return rejectUnknown(exchange, asked)
    if (!location)
      return probe(exchange, asked, member => exchangeFor(context, exchange, asked, { member, uri: asked }))
    context.send(location.member, exchangeFor(context, exchange, asked, location))
  }

  return (exchange: Exchange): void => {
    const asked = exchange.params.get('uri')?.asString()
    if (asked === undefined) return rejectParams(exchange, '`uri` must be a string')
    context.continueWith(locate(exchange.caller, asked), exchange, location => route(exchange, asked, location))
  }
}

const isAlias = (context: RouteContext, uri: string): boolean =>
  context.memberByNamespace(originalOf(uri)?.namespace ?? '') !== undefined

/** With the error code of the caller's revision: not all have the same. */
export const rejectUnknownResource = (exchange: Exchange, uri: string): void => {
  const { method, params, caller } = exchange
  const error = rpcError('invalidParams', `Unknown resource: ${uri}`, Json.of({ uri }))
  const ending = convertError(method, error, params, MODERN, caller.revision)
  rejectWith(exchange, 'code' in ending ? ending : error)
}

/** The exchange with the member's URI; its answer has the URI that the caller asked for. */
const exchangeFor = (
  context: RouteContext,
  exchange: Exchange,
  asked: string,
  { member, uri }: ResourceLocation,
): Exchange => {
  const { caller, method, params, sink } = exchange
  const mayHaveAliases = method === READ && context.isAggregate && hasAliases(context, caller, member)
  const others = mayHaveAliases ? shownUriFor(context, caller, member) : undefined
  const rename = (found: string) => (found === uri ? asked : others?.(found))
  const rewrite = (frame: Frame): Frame => {
    switch (frame.kind) {
      case 'result':
        if (method === READ && asked.startsWith(APP)) context.provenance.recordApp(caller, member.server)
        return { kind: 'result', result: rewriteResult(frame.result) }
      case 'question':
        return context.isAggregate ? withServerName(frame, member.server) : frame
      case 'failure':
        return asked === uri
          ? frame
          : { kind: 'failure', error: { ...frame.error, data: rewriteData(frame.error.data) } }
      case 'notice':
        return frame
    }
  }
  const rewriteResult = (result: Json): Json => {
    const named = context.isAggregate ? withServerNames(result, member.server) : result
    return asked === uri && !others ? named : rewriteUris(method, named, rename)
  }
  const rewriteData = (data: Json | undefined): Json | undefined =>
    data?.get('uri')?.isString(uri) ? data.with('uri', asked) : data
  return {
    ...exchange,
    params: asked === uri ? params : params.with('uri', uri),
    sink: frame => sink(rewrite(frame)),
  }
}

/** Finds the member that has a URI; undefined if that is not known without a request to the members. */
export type LocateResource = (
  caller: Caller,
  uri: string,
) => ResourceLocation | undefined | Promise<ResourceLocation | undefined>

export const createResourceLocator = (context: RouteContext): LocateResource => {
  const { members, provenance, lists } = context

  const ifAllowed = (caller: Caller, member: Member | undefined, uri: string): ResourceLocation | undefined =>
    member && context.rulesOf(caller).allows('resources', member.server, uri) ? { member, uri } : undefined

  const byAlias = (caller: Caller, uri: string): ResourceLocation | undefined => {
    const alias = originalOf(uri)
    return alias && ifAllowed(caller, context.memberByNamespace(alias.namespace), alias.uri)
  }

  const byLists = async (caller: Caller, uri: string): Promise<ResourceLocation | undefined> => {
    const listed = (await lists.get(caller, 'resources')).find(uri)
    if (listed && 'member' in listed) return { member: listed.member, uri: listed.original }
    const template = closestTemplate(matchersOf(await lists.get(caller, 'templates')), uri)
    return template && ifAllowed(caller, template.member, uri)
  }

  return (caller, uri) => {
    const only = members.length === 1 ? members[0] : undefined
    if (only) return ifAllowed(caller, only, uri)
    const sender = context.memberByServer(provenance.serverOf(caller, uri))
    return ifAllowed(caller, sender, uri) ?? byAlias(caller, uri) ?? byLists(caller, uri)
  }
}

interface MemberMatcher {
  readonly matcher: TemplateMatcher
  readonly member: Member
}

const matchersByList = new WeakMap<MergedList, readonly MemberMatcher[]>()

/** The matchers of the original templates: aliases are resolved before. */
const matchersOf = (list: MergedList): readonly MemberMatcher[] => {
  const known = matchersByList.get(list)
  if (known) return known
  const matchers = list.items.map(({ member, original }) => ({ member, matcher: compileTemplate(original) }))
  matchersByList.set(list, matchers)
  return matchers
}
