import { createHmac } from 'node:crypto'
import type { Snapshot } from '../config/snapshot.ts'
import { SingleFlight } from '../std/single-flight.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'

/** What the replicas know of each other's configuration. Each reads its own file; the files should be equal. */
interface SharedState {
  readonly reloads: number // how often a replica was told to reload
  readonly fingerprints: Readonly<Record<string, string>> // of live replicas, by name
}

interface SharedConfigOptions {
  readonly store: Pick<StateStore, 'members' | 'shared'>
  readonly key: Uint8Array // a configuration holds secrets: its fingerprint must not help to guess them
  /** Another replica has reloaded its configuration. */
  readonly onReload: () => void
  readonly log: Log
}

export interface SharedConfig {
  /** Tells the others what configuration this replica has. */
  publish(snapshot: Snapshot): void
  /** Asks the other replicas to read their files again. */
  announceReload(): void
  /** The replicas whose configuration differs from this one's. */
  differing(): readonly string[]
  close(): void
}

const DOCUMENT = 'configuration'
const ATTEMPTS = 20
const NOTHING: SharedState = { reloads: 0, fingerprints: {} }

/** Shares the fingerprint of the configuration, and reloads, among the replicas. */
export const createSharedConfig = ({ store, key, onReload, log }: SharedConfigOptions): SharedConfig => {
  const { members, shared } = store
  const reading = new SingleFlight()
  let own: string | undefined
  let known = NOTHING
  let isFirst = true
  let isStale = false

  const read = async (): Promise<void> => {
    const found = await shared.document(DOCUMENT)
    const before = known
    known = found ? parse(found.body) : NOTHING
    if (!isFirst && known.reloads > before.reloads) onReload()
    isFirst = false
    // After a missed lease this replica has another name; the document may have been lost, too.
    if (own !== undefined && known.fingerprints[members.self] !== own) await change(state => state)
  }

  const readWhileStale = async (): Promise<void> => {
    while (isStale) {
      isStale = false
      await read().catch((error: unknown) => log.debug({ err: error }, 'configurations of other replicas not read'))
    }
  }

  const refresh = (): void => {
    isStale = true
    void reading.run(readWhileStale).then(() => isStale && refresh())
  }

  /** Writes the document, with this replica's fingerprint and those of the other live ones. */
  const change = async (edit: (state: SharedState) => SharedState): Promise<void> => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await shared.document(DOCUMENT)
      const { reloads, fingerprints } = edit(found ? parse(found.body) : NOTHING)
      const live = Object.entries(fingerprints).filter(([name]) => name !== members.self && members.at(name))
      const next = { reloads, fingerprints: { ...Object.fromEntries(live), [members.self]: own } }
      if (await shared.writeDocument(DOCUMENT, Buffer.from(JSON.stringify(next)), found?.version ?? 0)) return
    }
  }

  const changeSoon = (edit: (state: SharedState) => SharedState): void => {
    change(edit).catch((error: unknown) => log.warn({ err: error }, 'other replicas not told of the configuration'))
  }

  const stopListening = shared.on(DOCUMENT, refresh)
  return {
    publish: snapshot => {
      own = fingerprintOf(snapshot, key)
      changeSoon(state => state)
    },
    announceReload: () =>
      changeSoon(({ reloads, fingerprints }) => {
        known = { ...known, reloads: reloads + 1 } // its own announcement is no news
        return { reloads: reloads + 1, fingerprints }
      }),
    differing: () =>
      Object.entries(known.fingerprints).flatMap(([name, fingerprint]) =>
        fingerprint !== own && name !== members.self && members.at(name) ? [name] : [],
      ),
    close: stopListening,
  }
}

const parse = (body: Buffer): SharedState => ({ ...NOTHING, ...(JSON.parse(body.toString()) as Partial<SharedState>) })

/** Equal for configurations that serve the same. Where a replica listens, and where its file is, may differ. */
const fingerprintOf = ({ servers, workspaces, policies, auth, sse, limits }: Snapshot, key: Uint8Array): string => {
  const text = JSON.stringify({ servers, workspaces, policies, auth, sse, limits }, (_, value: unknown) =>
    value instanceof Map ? [...value].sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)) : value,
  )
  return createHmac('sha256', key).update(`configuration ${text}`).digest('base64url')
}
