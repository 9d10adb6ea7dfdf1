import { randomBytes } from 'node:crypto'
import type { SqlDatabase } from '../sql.ts'
import { claimMeta, replaceMeta, UnusableStore } from './prepare-state.ts'
import { openBody, sealBody } from './sealing.ts'
import type { KeyRing } from './secret.ts'

/** What makes a database the same one: another value means that the former data is lost. */
export interface StoreIdentity {
  readonly instance: string // new whenever the tables are created, so that each replica notices
  /** The key of the hashes that stand for ids. */
  readonly names: Buffer
}

const PLACE = 'meta:names'
const KEY_BYTES = 32

export const newIdentity = (): StoreIdentity => ({
  instance: randomBytes(12).toString('base64url'),
  names: randomBytes(KEY_BYTES),
})

/** Reads the identity of a database, or writes the `given` one into a new database. */
export const claimIdentity = async (
  database: SqlDatabase,
  keys: KeyRing,
  given: StoreIdentity = newIdentity(),
): Promise<StoreIdentity> => {
  const stored = await claimMeta(database, 'names', sealBody(keys[0], PLACE, given.names).toString('base64'))
  const sealed = Buffer.from(stored, 'base64')
  const names = openBody(keys, PLACE, sealed)
  if (!names)
    throw new UnusableStore(
      `${database.location} is sealed with another secret. It was not changed: restore the secret it was written with, or move it away.`,
    )
  // While a secret is replaced, the first replica that has the new one seals the key with it.
  if (!openBody([keys[0]], PLACE, sealed))
    await replaceMeta(database, 'names', sealBody(keys[0], PLACE, names).toString('base64'))
  return { instance: await claimMeta(database, 'instance', given.instance), names }
}
