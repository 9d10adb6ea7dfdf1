import { type Admission, type Admit, clientAddressOf, networkOf, type RequestInfo } from '../protocol/admission.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import { auditText } from './request-facts.ts'

const WINDOW_MS = 60_000
const MOST_IN_WINDOW = 30 // events of one network; further rejections become one event with their number
const MOST_NETWORKS = 1000
const OTHERS = 'others' // counts for every new network while the table is full

interface RejectionWindow {
  readonly since: number
  count: number
}

/** Writes an event for each request that is not admitted. One network cannot flood the audit log. */
export class RejectionAudit {
  readonly #write: WriteAuditEvent
  readonly #windows = new Map<string, RejectionWindow>() // oldest first
  #timer: NodeJS.Timeout | undefined

  constructor(write: WriteAuditEvent) {
    this.#write = write
  }

  /** The same admission; rejections are written. */
  watch(admit: Admit): Admit {
    return (request, workspace, response) => {
      const admission = admit(request, workspace, response)
      if (admission instanceof Promise) return admission.then(decided => this.#note(decided, request, workspace))
      return admission.kind === 'in' ? admission : this.#note(admission, request, workspace)
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    for (const [network, window] of this.#windows) this.#writeRest(network, window)
    this.#windows.clear()
  }

  #note(admission: Admission, request: RequestInfo, workspace: string): Admission {
    if (admission.kind === 'in') return admission
    const address = clientAddressOf(request)
    const window = this.#windowOf(networkOf(address))
    if (++window.count > MOST_IN_WINDOW) return admission
    const { status, error } = admission
    const agent = request.headers['user-agent']
    this.#write('rejected', {
      address,
      workspace: auditText(workspace),
      status,
      code: error.code,
      reason: auditText(error.message),
      userAgent: agent === undefined ? undefined : auditText(agent),
    })
    return admission
  }

  #windowOf(network: string): RejectionWindow {
    const key = this.#windows.size < MOST_NETWORKS || this.#windows.has(network) ? network : OTHERS
    const known = this.#windows.get(key)
    if (known) return known
    const window = { since: Date.now(), count: 0 }
    this.#windows.set(key, window)
    this.#timer ??= setTimeout(() => this.#sweep(), WINDOW_MS).unref()
    return window
  }

  #sweep(): void {
    const now = Date.now()
    for (const [network, window] of this.#windows) {
      if (now - window.since < WINDOW_MS) break
      this.#windows.delete(network)
      this.#writeRest(network, window)
    }
    const [oldest] = this.#windows.values()
    this.#timer = oldest && setTimeout(() => this.#sweep(), oldest.since + WINDOW_MS - now).unref()
  }

  #writeRest(address: string, { count, since }: RejectionWindow): void {
    if (count <= MOST_IN_WINDOW) return
    const seconds = Math.round((Date.now() - since) / 1000)
    this.#write('rejected', { address, count: count - MOST_IN_WINDOW, seconds })
  }
}
