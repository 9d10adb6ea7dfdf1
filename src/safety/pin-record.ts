import { gunzipSync, gzipSync } from 'node:zlib'
import type { ToolDefinition } from './tool-definition.ts'

const FORMAT = 1
const MOST_HASHES = 8 // approved definitions of one tool; clients of other capabilities may get another one each
const MOST_QUARANTINED = 1000 // that are reported; more are rejected all the same
const MOST_PRINCIPALS = 10_000
const LONGEST_TEXT = 256 * 1024
const MOST_TEXT = 7 * 1024 * 1024 // characters, before they are compressed

/** A tool that is neither listed nor called until its definition is approved. */
export interface QuarantineEntry {
  readonly hash: string
  readonly at: number // Unix time in milliseconds when it was first seen
  readonly client: string // the capabilities of the client that the server listed it to
}

/** What is stored of one server, or of the list of one principal there. */
export interface PinRecord {
  readonly isPinned: boolean // a first list was seen; false: the record holds approvals only
  readonly pins: ReadonlyMap<string, readonly string[]> // hashes of approved definitions by tool, the latest last
  readonly quarantined: ReadonlyMap<string, QuarantineEntry> // by tool
  readonly principals: readonly string[] // that have a record of their own at this server
}

export const EMPTY_RECORD: PinRecord = { isPinned: false, pins: new Map(), quarantined: new Map(), principals: [] }

export const encodePins = ({ isPinned, pins, quarantined, principals }: PinRecord): Buffer =>
  Buffer.from(
    JSON.stringify({
      format: FORMAT,
      isPinned,
      pins: Object.fromEntries(pins),
      quarantined: Object.fromEntries(quarantined),
      principals,
    }),
  )

/** Throws if the body was not written by this version: to guess would approve unseen definitions. */
export const decodePins = (body: Buffer): PinRecord => {
  const stored = JSON.parse(body.toString()) as {
    format: number
    isPinned: boolean
    pins: Record<string, string[]>
    quarantined: Record<string, QuarantineEntry>
    principals: string[]
  }
  if (stored.format !== FORMAT) throw new Error(`their format is ${stored.format}, and this version reads ${FORMAT}`)
  return {
    isPinned: stored.isPinned,
    pins: new Map(Object.entries(stored.pins)),
    quarantined: new Map(Object.entries(stored.quarantined)),
    principals: stored.principals,
  }
}

/** Whether a definition is approved by one of the records. */
export const isApproved = ({ name, hash }: Pick<ToolDefinition, 'name' | 'hash'>, ...records: readonly PinRecord[]) =>
  records.some(({ pins }) => pins.get(name)?.includes(hash) === true)

/** The record after definitions were approved; they leave the quarantine. */
export const withApproved = (
  record: PinRecord,
  approved: readonly Pick<ToolDefinition, 'name' | 'hash'>[],
): PinRecord => {
  const [pins, quarantined] = [new Map(record.pins), new Map(record.quarantined)]
  for (const { name, hash } of approved) {
    const others = (pins.get(name) ?? []).filter(each => each !== hash)
    pins.set(name, [...others, hash].slice(-MOST_HASHES))
    if (quarantined.get(name)?.hash === hash) quarantined.delete(name)
  }
  return { ...record, pins, quarantined }
}

/** What a list has shown. */
export interface ListSighting {
  readonly client: string
  readonly approved: ReadonlySet<string> // names
  readonly rejected: ReadonlyMap<string, string> // the hash by name
  readonly isComplete: boolean // it was the whole list
}

/**
 * The record after a list was seen; the same object if nothing is new. A tool leaves the quarantine when it is listed as it was
 * approved, or no longer listed to a client with the capabilities it was listed to.
 */
export const withSighting = (record: PinRecord, sighting: ListSighting, now: number): PinRecord => {
  const { client, approved, rejected, isComplete } = sighting
  const quarantined = new Map(record.quarantined)
  for (const [name, entry] of record.quarantined) {
    const isGone = isComplete && !rejected.has(name)
    if (entry.client === client && (approved.has(name) || isGone)) quarantined.delete(name)
  }
  for (const [name, hash] of rejected) {
    if (quarantined.get(name)?.hash === hash || quarantined.size >= MOST_QUARANTINED) continue
    quarantined.set(name, { hash, at: now, client })
  }
  const isSame =
    quarantined.size === record.quarantined.size &&
    [...quarantined].every(([name, entry]) => record.quarantined.get(name) === entry)
  return isSame ? record : { ...record, quarantined }
}

/** The record with one more principal; the same object if it is there. */
export const withPrincipal = (record: PinRecord, principal: string): PinRecord => {
  if (record.principals.includes(principal)) return record
  if (record.principals.length >= MOST_PRINCIPALS)
    throw new Error(`the lists of more than ${MOST_PRINCIPALS} callers of one server cannot be pinned`)
  return { ...record, principals: [...record.principals, principal] }
}

/** Definitions by hash, to show what has changed. */
export type DefinitionTexts = ReadonlyMap<string, string>

/** The texts of what a record names, as far as there is room for them; the shortest first. */
export const encodeTexts = (texts: DefinitionTexts): Buffer => {
  let left = MOST_TEXT
  const kept = [...texts]
    .sort(([, a], [, b]) => a.length - b.length)
    .filter(([, text]) => {
      left -= text.length
      return text.length <= LONGEST_TEXT && left >= 0
    })
  return gzipSync(JSON.stringify(Object.fromEntries(kept)))
}

export const decodeTexts = (body: Buffer): DefinitionTexts =>
  new Map(
    Object.entries(
      JSON.parse(gunzipSync(body, { maxOutputLength: 8 * MOST_TEXT }).toString()) as Record<string, string>,
    ),
  )
