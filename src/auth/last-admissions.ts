import type { Socket } from 'node:net'
import type { RequestInfo } from '../protocol/admission.ts'

interface LastAdmission<T> {
  readonly authorization: string
  readonly workspace: string
  readonly until: number
  readonly admitted: T
}

const REPEATED_MS = 5_000

/** What the last request of each connection was admitted with: most clients send the same header again and again. */
export class LastAdmissions<T> {
  #bySocket = new WeakMap<Socket, LastAdmission<T>>()

  /** What a request was admitted with that had the same token, for the same workspace, on the same connection. */
  find({ socket, headers: { authorization } }: RequestInfo, workspace: string): T | undefined {
    if (authorization === undefined) return undefined
    const last = this.#bySocket.get(socket)
    if (last === undefined || last.workspace !== workspace || Date.now() >= last.until) return undefined
    return isSameSecret(last.authorization, authorization) ? last.admitted : undefined
  }

  /** `expires`: when the token ends, epoch milliseconds. */
  set({ socket, headers: { authorization } }: RequestInfo, workspace: string, admitted: T, expires: number): void {
    if (authorization === undefined) return
    const until = Math.min(expires, Date.now() + REPEATED_MS)
    this.#bySocket.set(socket, { authorization, workspace, until, admitted })
  }

  /** Forgets all, because tokens may have become invalid. */
  clear(): void {
    this.#bySocket = new WeakMap()
  }
}

const SECRET_END = 64 // characters: more than a secret of ours has, and as many as cannot be guessed of a signature

/**
 * Compares the end first, and all of its characters: clients of a proxy can share a connection, and must not learn from the
 * time how much of a token they have guessed.
 */
const isSameSecret = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false
  let difference = 0
  for (let at = Math.max(0, a.length - SECRET_END); at < a.length; at++)
    difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0 && a === b
}
