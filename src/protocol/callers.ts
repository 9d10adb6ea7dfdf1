import type { Caller } from './exchange.ts'

/** Whether two callers are certainly the same user; an unknown caller is the same only within its own session. */
export const isSameUser = (a: Caller, b: Caller): boolean => {
  if (a === b) return true
  if (a.principal !== undefined || b.principal !== undefined) return a.principal === b.principal
  return a.session !== undefined && a.session === b.session
}

/** Whether all of them are the same user; true for none. */
export const areSameUser = (callers: readonly Caller[]): boolean => {
  const [first] = callers
  return first === undefined || callers.every(caller => isSameUser(first, caller))
}

/** The users a process has served: one, or several. */
export class ServedUsers {
  #first: Caller | undefined
  #areSeveral = false

  add(caller: Caller): void {
    this.#first ??= caller
    this.#areSeveral ||= !isSameUser(this.#first, caller)
  }

  get areSeveral(): boolean {
    return this.#areSeveral
  }
}
