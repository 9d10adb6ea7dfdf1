import {
  CHANGING_LISTS,
  type ChangingList,
  isPartOf,
  LIST_CHANGES,
  NOTIFICATIONS,
} from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'

const URIS = 'resourceSubscriptions'
const ENVELOPE = 'io.modelcontextprotocol/'

/** What a `subscriptions/listen` asks for. */
export interface ListenFilter {
  readonly lists: ReadonlySet<ChangingList>
  readonly uris: ReadonlySet<string>
}

/** The filter of a listen; undefined if it asks for anything else, so that it cannot be joined with others. */
export const filterOf = (params: Json): ListenFilter | undefined => {
  const notifications = params.get('notifications')
  if (!notifications?.isObject || params.entries().some(([name, value]) => !isJoinable(name, value))) return undefined
  const lists = new Set<ChangingList>()
  const uris = new Set<string>()
  for (const [name, value] of notifications.entries()) {
    const list = CHANGING_LISTS.find(each => LIST_CHANGES[each].flag === name)
    const named = name === URIS && value.kind === 'array' ? value.elements().map(uri => uri.asString()) : undefined
    if (list && value.kind === 'boolean') {
      if (value.asBoolean() === true) lists.add(list)
    } else if (named?.every(uri => uri !== undefined)) for (const uri of named) uris.add(uri)
    else return undefined
  }
  return { lists, uris }
}

/** Members of the params that a shared request need not carry: the gateway writes the envelope itself. */
const isJoinable = (name: string, value: Json): boolean =>
  name === 'notifications' || (name === '_meta' && value.entries().every(([key]) => key.startsWith(ENVELOPE)))

/** The params of a listen with that filter. */
export const paramsOf = ({ lists, uris }: ListenFilter): Json => {
  const flags = [...lists].map(list => [LIST_CHANGES[list].flag, true] as const)
  return Json.of({ notifications: { ...Object.fromEntries(flags), ...(uris.size > 0 && { [URIS]: [...uris] }) } })
}

/** Everything that one of the filters asks for. */
export const unionOf = (filters: Iterable<ListenFilter>): ListenFilter => {
  const lists = new Set<ChangingList>()
  const uris = new Set<string>()
  for (const filter of filters) {
    for (const list of filter.lists) lists.add(list)
    for (const uri of filter.uris) uris.add(uri)
  }
  return { lists, uris }
}

/** Whether the first filter asks for everything that the second asks for. */
export const includes = (all: ListenFilter, some: ListenFilter): boolean =>
  [...some.lists].every(list => all.lists.has(list)) && [...some.uris].every(uri => all.uris.has(uri))

/** Whether a listen with that filter gets the notification. An update may name a part of what was subscribed to. */
export const isFor = ({ lists, uris }: ListenFilter, method: string, params: Json): boolean => {
  const list = CHANGING_LISTS.find(each => LIST_CHANGES[each].method === method)
  if (list) return lists.has(list)
  if (method !== NOTIFICATIONS.resourceUpdated) return true
  const uri = params.get('uri')?.asString() ?? ''
  if (uris.has(uri)) return true
  for (const own of uris) if (isPartOf(uri, own)) return true
  return false
}

/** The acknowledgement for one of several listens: only what it asked for. */
export const acknowledgementFor = (acknowledged: Json, { lists, uris }: ListenFilter): Json => {
  const honoured = acknowledged.get('notifications')
  if (!honoured?.isObject) return acknowledged
  const others = CHANGING_LISTS.filter(list => !lists.has(list)).map(list => LIST_CHANGES[list].flag)
  const own = (honoured.get(URIS)?.elements() ?? []).filter(uri => uris.has(uri.asString() ?? ''))
  const narrowed = honoured.without(...others, URIS)
  return acknowledged.with('notifications', uris.size > 0 ? narrowed.with(URIS, own) : narrowed)
}
