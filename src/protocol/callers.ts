import type { Caller } from './exchange.ts'

/** All anonymous callers share one key, which no principal has. */
export const principalKey = (principal: string | undefined): string => (principal === undefined ? '' : `=${principal}`)

/** A copy for state that outlives the request: it does not keep the body of the request in memory. */
export const compactCaller = (caller: Caller): Caller => ({
  ...caller,
  capabilities: caller.capabilities.compact(),
  info: caller.info?.compact(),
})

/** Whether two callers are certainly the same user. Anonymous callers are, if they share a session. */
export const isSameUser = (a: Caller, b: Caller): boolean => {
  if (a === b) return true
  if (a.principal !== undefined || b.principal !== undefined) return a.principal === b.principal
  return a.session !== undefined && a.session === b.session
}

/** Whether all callers are the same user; true for an empty list. */
export const areSameUser = (callers: readonly Caller[]): boolean => {
  const [first] = callers
  return first === undefined || callers.every(caller => isSameUser(first, caller))
}

/** Whether a process has served one user or several. */
export class ServedUsers {
  #first: Caller | undefined
  #areSeveral = false

  add(caller: Caller): void {
    this.#first ??= caller
    this.#areSeveral ||= !isSameUser(this.#first, caller)
  }

  get areNone(): boolean {
    return this.#first === undefined
  }

  get areSeveral(): boolean {
    return this.#areSeveral
  }
}
