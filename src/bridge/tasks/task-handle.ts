import type { Caller } from '../../protocol/exchange.ts'
import { sealBytesStably, unsealBytes } from '../../wire/seal.ts'

/** The id of a task as a client knows it. It is bound to its principal, and says where the task is. */
export interface TaskHandle {
  readonly kind: 'server' | 'gateway' // who has the task
  readonly server: string
  readonly workspace: string
  readonly principal: string | undefined
  readonly id: string // at the server, or in the store of the gateway
}

const PURPOSE = 'task'
const LONGEST = 8192 // characters; a server's own id may be long

type Content = readonly [kind: 's' | 'g', server: string, workspace: string, principal: string | null, id: string]

/** Makes and reads handles. The first key seals, all of them open. */
export class TaskHandles {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]]

  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys
  }

  make({ kind, server, workspace, principal, id }: TaskHandle): string {
    const content: Content = [kind === 'server' ? 's' : 'g', server, workspace, principal ?? null, id]
    return sealBytesStably(this.#keys[0], PURPOSE, JSON.stringify(content)).toString('base64url')
  }

  /** Undefined for anything that was not made with one of the keys. */
  open(text: string): TaskHandle | undefined {
    const sealed = text.length > LONGEST ? Buffer.alloc(0) : Buffer.from(text, 'base64url')
    if (sealed.toString('base64url') !== text) return undefined
    for (const key of this.#keys) {
      const opened = unsealBytes(key, PURPOSE, sealed)
      if (!opened) continue
      const [kind, server, workspace, principal, id] = JSON.parse(opened.toString()) as Content
      return { kind: kind === 's' ? 'server' : 'gateway', server, workspace, principal: principal ?? undefined, id }
    }
    return undefined
  }

  /** The handle in a request, if its caller may use it. */
  openFor(caller: Caller, text: string): TaskHandle | undefined {
    const handle = this.open(text)
    return handle && handle.principal === caller.principal && handle.workspace === caller.workspace ? handle : undefined
  }
}
