import { hrefTo } from '../../router.ts'

/** The views of the page; `entity` and `episode` show one of them, named by the next segment of the address. */
export const MEMORY_VIEWS = ['search', 'timeline', 'graph', 'statistics', 'entity', 'episode'] as const
export type MemoryView = (typeof MEMORY_VIEWS)[number]

/** A place of the page: `#/memory/entity/0199…?group=main&asOf=2025-05-01`. */
export interface MemoryPlace {
  readonly view: MemoryView
  readonly id?: string | undefined
  readonly query: string // what is searched
  readonly server?: string | undefined
  readonly tenant?: string | undefined
  readonly group?: string | undefined // undefined: all
  readonly asOf?: string | undefined // a date; undefined: now
}

const DAY = /^\d{4}-\d{2}-\d{2}$/

const isView = (name: string | undefined): name is MemoryView => MEMORY_VIEWS.some(view => view === name)

/** Reads an address; what it does not know leads to the search. */
export const readMemoryPlace = (path: readonly string[], query: URLSearchParams): MemoryPlace => {
  const [name, id] = path
  const needsId = name === 'entity' || name === 'episode'
  const asOf = query.get('asOf') ?? ''
  return {
    view: isView(name) && (!needsId || id !== undefined) ? name : 'search',
    id: needsId ? id : undefined,
    query: query.get('q') ?? '',
    server: query.get('server') || undefined,
    tenant: query.get('tenant') || undefined,
    group: query.get('group') || undefined,
    asOf: DAY.test(asOf) && !Number.isNaN(Date.parse(asOf)) ? asOf : undefined,
  }
}

/** The address of a place. */
export const memoryHref = ({ view, id, query, server, tenant, group, asOf }: MemoryPlace): string =>
  hrefTo('memory', id === undefined ? [view] : [view, id], { q: query || undefined, server, tenant, group, asOf })

/** The query of a request of the admin API about this memory: a date is all of that day, here. */
export const memoryQuery = (
  { server, tenant, group, asOf }: MemoryPlace,
  more: Readonly<Record<string, string | undefined>> = {},
): string => {
  const until = asOf === undefined ? undefined : new Date(`${asOf}T23:59:59`).toISOString()
  const given = Object.entries({ server, tenant, group, asOf: until, ...more })
  const query = new URLSearchParams(given.filter((entry): entry is [string, string] => entry[1] !== undefined))
  return query.size === 0 ? '' : `?${query}`
}
