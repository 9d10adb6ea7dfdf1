import { NEVER } from '../protocol/abort.ts'
import { RpcFailure } from '../protocol/errors.ts'
import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { Json } from '../wire/json.ts'

/** A list of the server's, and the member of its result that holds it. */
export interface NameList {
  readonly method: string
  readonly member: string
}

type Names = Promise<ReadonlySet<string>>

const FRESH_MS = 60_000
const MOST_CALLERS = 1000
const MOST_PAGES = 64

/** The names a server lists, each caller's for itself, asked for when somebody needs them and kept for a minute. */
export const createOwnNames = (upstream: Upstream) => {
  const known = new Map<string, { readonly names: Names; readonly until: number }>()

  const look = (caller: Caller, list: NameList): Names => {
    const who = caller.session ?? caller.principal
    if (who === undefined) return listNames(upstream, caller, list) // he shares with nobody, not even with himself
    const key = JSON.stringify([list.method, caller.session, caller.principal])
    const before = known.get(key)
    if (before && before.until > Date.now()) return before.names
    if (known.size >= MOST_CALLERS) known.clear()
    const names = listNames(upstream, caller, list)
    known.set(key, { names, until: Date.now() + FRESH_MS })
    names.catch(() => known.delete(key))
    return names
  }

  return {
    /** A server that does not say what it has, has none of that name. */
    has: (caller: Caller, list: NameList, name: string): Promise<boolean> =>
      look(caller, list).then(
        names => names.has(name),
        () => false,
      ),
    forget: (): void => known.clear(),
  }
}

const listNames = async (upstream: Upstream, caller: Caller, { method, member }: NameList): Names => {
  const names = new Set<string>()
  let cursor: Json | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const result = await ask(await upstream.open(caller), caller, method, cursor ? Json.of({ cursor }) : Json.empty)
    for (const item of result.get(member)?.elements() ?? []) names.add(item.get('name')?.asString() ?? '')
    cursor = result.get('nextCursor')
    if (cursor?.asString() === undefined) break
  }
  return names
}

const ask = (peer: Peer, caller: Caller, method: string, params: Json): Promise<Json> =>
  new Promise((resolve, reject) => {
    peer.dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind === 'result') resolve(frame.result)
        else if (frame.kind === 'failure') reject(new RpcFailure(frame.error))
      },
    })
  })
