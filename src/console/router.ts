import { computed, signal } from '@preact/signals'

/** The pages, by the first segment of their address. */
export const PAGE_IDS = ['overview', 'explore', 'recorder', 'memory', 'connect', 'configuration'] as const
export type PageId = (typeof PAGE_IDS)[number]

/** A place in the console: `#/explore/default/tools?name=echo` is the page `explore`, a path of two segments and a query. */
export interface ConsoleRoute {
  readonly page: PageId
  readonly path: readonly string[]
  readonly query: URLSearchParams
}

/** What pages receive. */
export type PageProps = Pick<ConsoleRoute, 'path' | 'query'>

type QueryValues = Readonly<Record<string, string | undefined>>

const decode = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment // shown as it is: a broken link leads to a place that does not exist
  }
}

export const parseRoute = (hash: string): ConsoleRoute => {
  const [path = '', ...rest] = hash.replace(/^#?\/?/, '').split('?')
  const [first = '', ...segments] = path.split('/').filter(segment => segment !== '')
  const page = PAGE_IDS.find(id => id === first) ?? 'overview'
  return { page, path: page === first ? segments.map(decode) : [], query: new URLSearchParams(rest.join('?')) }
}

/** The address of a place, for links; values that are undefined are left out. */
export const hrefTo = (page: PageId, path: readonly string[] = [], query: QueryValues = {}): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const search = new URLSearchParams(given).toString()
  return `#/${[page, ...path.map(encodeURIComponent)].join('/')}${search && `?${search}`}`
}

const hash = signal(location.hash)

/** The place that is shown. */
export const route = computed(() => parseRoute(hash.value))

/** Goes to an address from `hrefTo`. `replace` leaves no entry in the history, for filters that change with each key. */
export const navigate = (href: string, { replace = false } = {}): void => {
  if (href === location.hash) return
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  hash.value = href
}

/** Follows links and the buttons of the browser. */
export const followAddress = (): void => {
  const read = (): void => {
    hash.value = location.hash
  }
  addEventListener('hashchange', read)
  addEventListener('popstate', read)
}
