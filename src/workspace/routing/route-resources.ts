import { convertError } from '../../eras/convert.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { closestTemplate, compileTemplate, type TemplateMatcher } from '../../protocol/uri-template.ts'
import { Json } from '../../wire/json/json.ts'
import type { MergedList } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { withServerName, withServerNames } from './member-questions.ts'
import { type RouteContext, rejectParams, rejectWith } from './route-context.ts'
import { hasAliases, shownUriFor } from './route-frames.ts'
import { createResourceProbe } from './route-probe.ts'
import { originalOf, rewriteUris } from './uris.ts'

/** Where a resource is, and what it is called there. */
export interface ResourceLocation {
  readonly member: Member
  readonly uri: string
}

const READ = 'resources/read'
const APP = 'ui://'

/** Routes what is called by a URI: reads and subscriptions. */
export const createResourceRoute = (context: RouteContext, locate: LocateResource) => {
  const probe = createResourceProbe(context, rejectUnknownResource)

  const deliver = (exchange: Exchange, asked: string, place: ResourceLocation | undefined): void => {
    if (!place && isAlias(context, asked)) return rejectUnknownResource(exchange, asked)
    if (!place) return probe(exchange, asked, member => visiting(context, exchange, asked, { member, uri: asked }))
    context.send(place.member, visiting(context, exchange, asked, place))
  }

  return (exchange: Exchange): void => {
    const asked = exchange.params.get('uri')?.asString()
    if (asked === undefined) return rejectParams(exchange, '`uri` must be a string')
    context.when(locate(exchange.caller, asked), exchange, place => deliver(exchange, asked, place))
  }
}

const isAlias = (context: RouteContext, uri: string): boolean =>
  context.memberByNamespace(originalOf(uri)?.ns ?? '') !== undefined

/** As a caller of each revision knows it: not all have the same code for this. */
export const rejectUnknownResource = (exchange: Exchange, uri: string): void => {
  const { method, params, caller } = exchange
  const error = rpcError('invalidParams', `Unknown resource: ${uri}`, Json.of({ uri }))
  const ending = convertError(method, error, params, MODERN, caller.revision)
  rejectWith(exchange, 'code' in ending ? ending : error)
}

/** The exchange as the member gets it, and its answer as the caller asked for it. */
const visiting = (
  context: RouteContext,
  exchange: Exchange,
  asked: string,
  { member, uri }: ResourceLocation,
): Exchange => {
  const { caller, method, params, sink } = exchange
  const isMixed = method === READ && context.isAggregate && hasAliases(context, caller, member)
  const others = isMixed ? shownUriFor(context, caller, member) : undefined
  const rename = (found: string) => (found === uri ? asked : others?.(found))
  const turned = (frame: Frame): Frame => {
    switch (frame.kind) {
      case 'result':
        if (method === READ && asked.startsWith(APP)) context.provenance.recordApp(caller, member)
        return { kind: 'result', result: shown(frame.result) }
      case 'question':
        return context.isAggregate ? withServerName(frame, member.server) : frame
      case 'failure':
        return asked === uri ? frame : { kind: 'failure', error: { ...frame.error, data: renamed(frame.error.data) } }
      case 'notice':
        return frame
    }
  }
  const shown = (result: Json): Json => {
    const signed = context.isAggregate ? withServerNames(result, member.server) : result
    return asked === uri && !others ? signed : rewriteUris(method, signed, rename)
  }
  const renamed = (data: Json | undefined): Json | undefined =>
    data?.get('uri')?.isString(uri) ? data.with('uri', asked) : data
  return {
    ...exchange,
    caller,
    params: asked === uri ? params : params.with('uri', uri),
    sink: frame => sink(turned(frame)),
  }
}

/** Finds the member a URI belongs to; undefined where nobody can tell without asking. */
export type LocateResource = (
  caller: Caller,
  uri: string,
) => ResourceLocation | undefined | Promise<ResourceLocation | undefined>

export const createResourceLocator = (context: RouteContext): LocateResource => {
  const { members, provenance, lists: shelves } = context

  const permitted = (caller: Caller, member: Member | undefined, uri: string): ResourceLocation | undefined =>
    member && context.rulesOf(caller).allows('resources', member.server, uri) ? { member, uri } : undefined

  const byAlias = (caller: Caller, uri: string): ResourceLocation | undefined => {
    const alias = originalOf(uri)
    return alias && permitted(caller, context.memberByNamespace(alias.ns), alias.uri)
  }

  const byLists = async (caller: Caller, uri: string): Promise<ResourceLocation | undefined> => {
    const listed = (await shelves.get(caller, 'resources')).find(uri)
    if (listed && 'member' in listed) return { member: listed.member, uri: listed.original }
    const template = closestTemplate(matchersOf(await shelves.get(caller, 'templates')), uri)
    return template && permitted(caller, template.member, uri)
  }

  return (caller, uri) => {
    const only = members.length === 1 ? members[0] : undefined
    if (only) return permitted(caller, only, uri)
    return permitted(caller, provenance.memberOf(caller, uri), uri) ?? byAlias(caller, uri) ?? byLists(caller, uri)
  }
}

interface Made {
  readonly matcher: TemplateMatcher
  readonly member: Member
}

const matchers = new WeakMap<MergedList, readonly Made[]>()

/** By their own templates: what an alias made of one is read back before anybody looks here. */
const matchersOf = (shelf: MergedList): readonly Made[] => {
  const before = matchers.get(shelf)
  if (before) return before
  const made = shelf.items.map(({ member, original }) => ({ member, matcher: compileTemplate(original) }))
  matchers.set(shelf, made)
  return made
}
