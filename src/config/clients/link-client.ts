import { isGateway } from '../own-entries.ts'
import type { McpClient } from './client-files.ts'
import { isSameEntry, openClient } from './edit-client.ts'

/** A change of one entry in the file of a client. */
export interface EntryChange {
  readonly client: McpClient
  readonly file: string
  readonly name: string
  readonly entry: object | undefined // undefined: it is removed
  readonly port: number | undefined // of the gateway
}

/** What a change would do, before it is done. */
export interface PlannedChange {
  /** `same`, `missing`: there is nothing to do; `other`: the entry of this name is another server. */
  readonly kind: 'new' | 'replaces' | 'same' | 'other' | 'missing'
  readonly before: string | undefined // the text of the file; undefined: there is none
  readonly after: string
  /** Writes it; returns the path of the backup. Rejects with a ConfigError if the file has changed meanwhile. */
  save(): Promise<string | undefined>
}

/** Reads the file of a client for a change of one entry; a ConfigError says why it cannot be edited. */
export const planChange = async ({ client, file, name, entry, port }: EntryChange): Promise<PlannedChange> => {
  const { text, entries, change, save } = await openClient(client, file)
  const found = Object.hasOwn(entries, name) ? entries[name] : undefined
  const kind = kindOf(found, entry, port)
  const after = kind === 'same' || kind === 'missing' ? (text ?? '') : change(name, entry)
  return { kind, before: text, after, save: () => save(after) }
}

const kindOf = (found: unknown, entry: object | undefined, port: number | undefined): PlannedChange['kind'] => {
  if (found === undefined) return entry ? 'new' : 'missing'
  if (entry && isSameEntry(found, entry)) return 'same'
  return isGateway(found, port) ? 'replaces' : 'other'
}
