import type { PinnedTool, PinStatus, QuarantinedTool } from '../protocol/pins.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import { describeChange } from './describe-change.ts'
import { createPinDocuments, type PinDocuments } from './pin-documents.ts'
import { EMPTY_RECORD, isApproved, type PinRecord } from './pin-record.ts'
import { type PinEvent, ServerPins } from './server-pins.ts'

interface ToolPinsOptions {
  readonly store: StateStore
  readonly writeAudit: WriteAuditEvent | undefined
  readonly log: Log
}

type ApprovalListener = (server: string) => void

/** The pinned tools of every server with `"pin": true`. */
export class ToolPins {
  readonly #documents: PinDocuments
  readonly #options: ToolPinsOptions
  readonly #servers = new Map<string, ServerPins>()
  readonly #listeners = new Set<ApprovalListener>()

  constructor(options: ToolPinsOptions) {
    this.#options = options
    this.#documents = createPinDocuments({ shared: options.store.shared, health: () => options.store.health() })
  }

  of(server: string): ServerPins {
    const known = this.#servers.get(server)
    if (known) return known
    const { log } = this.#options
    const pins = new ServerPins({
      server,
      documents: this.#documents,
      onEvent: event => this.#report(event),
      onApproved: () => {
        for (const listener of [...this.#listeners]) listener(server)
      },
      log,
    })
    this.#servers.set(server, pins)
    pins.readAgain()
    return pins
  }

  /** Forgets servers that are not pinned any more; the store keeps what is pinned. */
  keepOnly(servers: ReadonlySet<string>): void {
    for (const [name, pins] of this.#servers)
      if (!servers.has(name)) {
        pins.close()
        this.#servers.delete(name)
      }
  }

  /** Undefined for a server that is not pinned. */
  statusOf(server: string): PinStatus | undefined {
    const pins = this.#servers.get(server)
    if (!pins) return undefined
    const { record, fault } = pins
    return { pinned: record?.pins.size ?? 0, quarantined: pins.quarantined(), ...(fault !== undefined && { fault }) }
  }

  /** Calls the listener with each server of which tools were approved, here or at another replica. */
  onApproved(listener: ApprovalListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Every tool in quarantine with what has changed; rejects with PinsUnavailable. */
  async quarantined(): Promise<readonly QuarantinedTool[]> {
    const found = await Promise.all([...this.#servers.values()].map(pins => this.#quarantinedOf(pins)))
    return found.flat()
  }

  /** Approves definitions that are in quarantine; returns those that are not. Rejects with PinsUnavailable. */
  async approve(tools: readonly PinnedTool[]): Promise<readonly PinnedTool[]> {
    const known = await this.quarantined()
    const isKnown = (tool: PinnedTool): boolean =>
      known.some(({ server, name, hash }) => server === tool.server && name === tool.name && hash === tool.hash)
    for (const server of new Set(tools.map(tool => tool.server))) {
      const approved = tools.filter(tool => tool.server === server && isKnown(tool))
      if (approved.length > 0) await this.of(server).approve(approved)
    }
    return tools.filter(tool => !isKnown(tool))
  }

  close(): void {
    this.keepOnly(new Set())
  }

  async #quarantinedOf(pins: ServerPins): Promise<QuarantinedTool[]> {
    const { server } = pins
    const shared = await pins.load()
    const texts = await this.#documents.texts(server).catch(() => new Map<string, string>())
    const found = new Map<string, QuarantinedTool>()
    const add = (record: PinRecord, principal: string | undefined): void => {
      for (const [name, { hash, at }] of record.quarantined) {
        if (isApproved({ name, hash }, shared, record)) continue
        const key = JSON.stringify([name, hash])
        const before = found.get(key)
        const principals = [...(before?.principals ?? []), ...(principal === undefined ? [] : [principal])]
        const approved = record.pins.get(name)?.at(-1) ?? shared.pins.get(name)?.at(-1)
        const change = describeChange(approved === undefined ? undefined : texts.get(approved), texts.get(hash))
        const since = Math.min(at, before?.since ?? at)
        found.set(key, { server, name, hash, since, isNew: approved === undefined, principals, ...change })
      }
    }
    add(shared, undefined)
    for (const principal of shared.principals) {
      const own =
        pins.listOf(principal).own ?? (await this.#documents.read(server, principal).catch(() => EMPTY_RECORD))
      add(own, principal)
    }
    return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  #report({ kind, server, tool, hash, isNew, principal }: PinEvent): void {
    const { log, writeAudit } = this.#options
    const fields = { server, tool, change: isNew ? 'new' : 'changed', ...(principal !== undefined && { principal }) }
    if (kind === 'quarantined') log.warn(fields, 'tool quarantined; see "dragoman approve"')
    else log.info(fields, 'tool approved')
    writeAudit?.(kind === 'quarantined' ? 'tool_quarantined' : 'tool_approved', { ...fields, hash })
  }
}
