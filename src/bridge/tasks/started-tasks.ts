import type { Caller } from '../../protocol/exchange.ts'
import { TASK_LIMITS } from '../../protocol/tasks.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'

const MOST = TASK_LIMITS.perPrincipal * 20

/**
 * The servers' own tasks, and whose calls have started them. A server that is asked for its tasks may list those of all
 * users of the gateway, which it cannot tell apart.
 */
export class StartedTasks {
  readonly #known = new BoundedCache<true>(MOST, TASK_LIMITS.maxTtlMs, { mostPerGroup: TASK_LIMITS.perPrincipal })

  add(server: string, caller: Caller, id: string): void {
    const owner = ownerOf(caller)
    if (owner !== undefined) this.#known.set(JSON.stringify([server, owner, id]), true, owner)
  }

  has(server: string, caller: Caller, id: string): boolean {
    return this.#known.get(JSON.stringify([server, ownerOf(caller), id])) === true
  }
}

/** An anonymous caller is known by its session only. */
const ownerOf = ({ workspace, principal, session }: Caller): string | undefined => {
  if (principal !== undefined) return JSON.stringify([workspace, principal])
  return session === undefined ? undefined : JSON.stringify([workspace, null, session])
}
