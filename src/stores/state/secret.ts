import { hkdfSync, randomBytes } from 'node:crypto'
import { chmod, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** Keys of one purpose, 32 bytes each: the first one seals, all of them open. There are several while a secret is replaced. */
export type KeyRing = readonly [Buffer, ...Buffer[]]

/** The keys that replicas share, by purpose. */
export interface StateKeys {
  /** Session ids, channel ids, and the home within a `requestState`. */
  readonly ids: KeyRing
  /** The caller of a forwarded request. */
  readonly callers: KeyRing
  readonly cursors: KeyRing
  /** Cookies and forms of the pages on which people sign in. */
  readonly visitors: KeyRing
}

/** The secrets that keys are derived from; the newest is first. */
export type Secrets = readonly [string, ...string[]]

const derive = (secrets: Secrets, purpose: string): KeyRing => {
  const keyOf = (secret: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', `dragoman state: ${purpose}`, 32))
  const [first, ...others] = secrets
  return [keyOf(first), ...others.map(keyOf)]
}

export const deriveKeys = (secrets: Secrets): StateKeys => ({
  ids: derive(secrets, 'ids'),
  callers: derive(secrets, 'callers'),
  cursors: derive(secrets, 'cursors'),
  visitors: derive(secrets, 'visitors'),
})

/** The keys with which a store seals what it holds. */
export const deriveStoreKeys = (secrets: Secrets): KeyRing => derive(secrets, 'bodies')

export const newSecret = (): string => randomBytes(32).toString('base64url')

/** Keys that end with the process. */
export const randomKeys = (): StateKeys => deriveKeys([newSecret()])

const OWNER_ONLY = 0o600
const WRITE_MS = 500

/** Reads the secret of a data directory, or creates it. Only the owner can read its file. */
export const readSecretFile = async (data: string): Promise<Secrets> => {
  const file = join(data, 'secret')
  const created = await open(file, 'wx', OWNER_ONLY).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined
    throw error
  })
  if (created) {
    try {
      const secret = newSecret()
      await created.writeFile(`${secret}\n`)
      await created.sync()
      await created.close()
      return [secret]
    } catch (error) {
      await created.close().catch(() => {})
      await rm(file, { force: true }) // on a full disk: an empty file would stop the next start
      throw error
    }
  }
  await chmod(file, OWNER_ONLY).catch(() => {})
  for (let waited = 0; ; waited += 50) {
    const lines = (await readFile(file, 'utf8')).split('\n').filter(line => line.trim() !== '')
    const [first, ...others] = lines.map(line => line.trim())
    if (first !== undefined) return [first, ...others]
    if (waited >= WRITE_MS) throw new Error(`The file ${file} is empty: remove it, and a new secret is created.`)
    await delay(50) // another process has created it and writes it now
  }
}
