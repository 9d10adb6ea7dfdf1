import type { SharedDocument, StateStore } from '../stores/state/state-store.ts'
import {
  type DefinitionTexts,
  decodePins,
  decodeTexts,
  EMPTY_RECORD,
  encodePins,
  encodeTexts,
  type PinRecord,
} from './pin-record.ts'

const ATTEMPTS = 20 // of several replicas that write the same record

/** The pins of a server cannot be read or written: nothing of it may be listed or called. */
export class PinsUnavailable extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'PinsUnavailable'
  }
}

/** Where pins are stored: documents that all replicas share. */
export interface PinDocuments {
  /** The record of a server; with a principal, of the list of that principal. Rejects with PinsUnavailable. */
  read(server: string, principal: string | undefined): Promise<PinRecord>
  /** Changes a record, and resolves with it; a change that returns the same object writes nothing. */
  update(server: string, principal: string | undefined, change: (record: PinRecord) => PinRecord): Promise<PinRecord>
  texts(server: string): Promise<DefinitionTexts>
  /** Adds definitions, and drops those that are not needed any more. */
  addTexts(server: string, added: DefinitionTexts, isNeeded: (hash: string) => boolean): Promise<void>
  /** The listener is called when the record of a server may have changed. */
  onChanged(server: string, listener: () => void): () => void
}

const recordName = (server: string, principal: string | undefined): string =>
  principal === undefined ? `tool-pins:${server}` : `tool-pins:${server}\n${principal}`
const textsName = (server: string): string => `tool-texts:${server}`

export const createPinDocuments = ({ shared, health }: Pick<StateStore, 'shared'> & HasHealth): PinDocuments => {
  /** An empty store in memory, in place of one that cannot be used, would make every list a first one. */
  const checkStore = (): void => {
    const { state, reason } = health()
    if (state === 'memory-only') throw new PinsUnavailable(reason ?? 'the store cannot be used')
  }

  const read = async (name: string): Promise<SharedDocument | undefined> => {
    checkStore()
    return shared.document(name)
  }

  const decode = <T>(found: SharedDocument | undefined, decodeBody: (body: Buffer) => T, none: T): T => {
    if (!found) return none
    try {
      return decodeBody(found.body)
    } catch (error) {
      throw new PinsUnavailable(`the stored pins cannot be read: ${messageOf(error)}`)
    }
  }

  const change = async (name: string, next: (found: SharedDocument | undefined) => Buffer | undefined) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const found = await read(name)
      const body = next(found)
      if (!body || (await shared.writeDocument(name, body, found?.version ?? 0))) return
    }
    throw new PinsUnavailable('other replicas write the same pins all the time')
  }

  return {
    read: (server, principal) =>
      unavailableOnFailure(async () => decode(await read(recordName(server, principal)), decodePins, EMPTY_RECORD)),
    update: (server, principal, apply) =>
      unavailableOnFailure(async () => {
        let record = EMPTY_RECORD
        await change(recordName(server, principal), found => {
          const before = decode(found, decodePins, EMPTY_RECORD)
          record = apply(before)
          return record === before ? undefined : encodePins(record)
        })
        return record
      }),
    texts: server =>
      unavailableOnFailure(async () => decode(await read(textsName(server)), decodeTexts, new Map<string, string>())),
    addTexts: (server, added, isNeeded) =>
      unavailableOnFailure(() =>
        change(textsName(server), found => {
          const before = decode(found, decodeTexts, new Map<string, string>())
          const isKnown = [...added.keys()].every(hash => before.has(hash))
          return isKnown
            ? undefined
            : encodeTexts(new Map([...[...before].filter(([hash]) => isNeeded(hash)), ...added]))
        }),
      ),
    onChanged: (server, listener) => shared.on(recordName(server, undefined), listener),
  }
}

interface HasHealth {
  readonly health: StateStore['health']
}

const unavailableOnFailure = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw error instanceof PinsUnavailable ? error : new PinsUnavailable(messageOf(error))
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
