import type { Caller, Upstream } from '../../protocol/exchange.ts'
import { ask, itemsOf } from '../../protocol/listing.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Json } from '../../wire/json/json.ts'

/** A list of the server's, and the member of its result that holds it. */
export interface NamedList {
  readonly method: string
  readonly member: string
}

type Names = Promise<ReadonlySet<string>>

const FRESH_MS = 60_000
const MOST_CALLERS = 1000
const MOST_EACH = 100 // sessions and lists of one principal
const MOST_CHARACTERS = 1024 * 1024 // in the names of one list

/** The names a server lists, each caller's for itself, asked for when somebody needs them and kept for a minute. */
export const createOwnNames = (upstream: Upstream) => {
  const known = new BoundedCache<{ readonly names: Names; readonly until: number }>(MOST_CALLERS, FRESH_MS, {
    mostPerGroup: MOST_EACH,
  })

  const look = (caller: Caller, list: NamedList): Names => {
    const who = caller.session ?? caller.principal
    if (who === undefined) return listNames(upstream, caller, list) // he shares with nobody, not even with himself
    const key = JSON.stringify([list.method, caller.session, caller.principal])
    const before = known.get(key)
    if (before && before.until > Date.now()) return before.names
    const names = listNames(upstream, caller, list)
    known.set(key, { names, until: Date.now() + FRESH_MS }, caller.principal ?? '')
    names.catch(() => known.delete(key))
    return names
  }

  return {
    /** A server that does not say what it has, has none of that name. */
    has: (caller: Caller, list: NamedList, name: string): Promise<boolean> =>
      look(caller, list).then(
        names => names.has(name),
        () => false,
      ),
    forget: (): void => known.clear(),
  }
}

const listNames = async (upstream: Upstream, caller: Caller, { method, member }: NamedList): Names => {
  const names = new Set<string>()
  const page = async (params: Json): Promise<Json> =>
    ask((await upstream.open(caller)).dispatch, caller, method, params)
  let characters = 0
  for await (const item of itemsOf(member, page)) {
    const name = item.get('name')?.asString() ?? ''
    characters += name.length
    if (characters > MOST_CHARACTERS) break
    names.add(name)
  }
  return names
}
