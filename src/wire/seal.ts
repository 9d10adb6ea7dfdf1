import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** A 256-bit key, and the id that sealed texts name it by. */
export interface SealKey {
  readonly id: string // letters, digits, - and _
  readonly key: Uint8Array // 32 bytes
}

/** The key to seal with, and older keys that still unseal. */
export interface Keyring {
  readonly current: SealKey
  readonly older?: readonly SealKey[]
}

const ALGORITHM = 'aes-256-gcm'
const NONCE = 12
const TAG = 16

/** Encrypts and authenticates: `<key id>.<base64url of nonce, text and tag>`. */
export const seal = (keyring: Keyring, content: Uint8Array | string): string => {
  const { id, key } = keyring.current
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG })
  cipher.setAAD(Buffer.from(id))
  const text = typeof content === 'string' ? cipher.update(content, 'utf8') : cipher.update(content)
  return `${id}.${Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]).toString('base64url')}`
}

/** The content that was sealed with a key of this ring; undefined for anything else. */
export const unseal = (keyring: Keyring, sealed: string): Buffer | undefined => {
  const dot = sealed.indexOf('.')
  const id = sealed.slice(0, dot)
  const key = [keyring.current, ...(keyring.older ?? [])].find(candidate => candidate.id === id)
  const encoded = sealed.slice(dot + 1)
  const bytes = Buffer.from(encoded, 'base64url')
  // Node ignores unknown characters and spare bits when it decodes: accept only the encoding that seal writes.
  if (dot < 0 || !key || bytes.length < NONCE + TAG || bytes.toString('base64url') !== encoded) return undefined
  try {
    return decrypt(key, bytes)
  } catch {
    return undefined
  }
}

const decrypt = ({ id, key }: SealKey, bytes: Buffer): Buffer => {
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(id))
  decipher.setAuthTag(bytes.subarray(-TAG))
  return Buffer.concat([decipher.update(bytes.subarray(NONCE, -TAG)), decipher.final()])
}

interface KeyringOptions {
  readonly everyMs: number // lifetime of a key for sealing
  readonly keepMs: number // longest lifetime of a sealed text
  readonly now?: () => number
}

interface RetiredKey {
  readonly key: SealKey
  readonly until: number // every text sealed with it has expired then
}

/**
 * Random keys of this process. A key is replaced after `everyMs` and still unseals for `keepMs`. The returned function is
 * called for every seal and unseal, and replaces the keys when they are due, without a timer.
 */
export const createKeyring = ({ everyMs, keepMs, now = () => Date.now() }: KeyringOptions): (() => Keyring) => {
  const origin = randomBytes(3).toString('hex')
  let made = 0
  const make = (): SealKey => ({ id: `${origin}-${++made}`, key: randomBytes(32) })

  let madeAt = now()
  let retired: readonly RetiredKey[] = []
  let ring: Keyring = { current: make() }

  const replace = (at: number, current: SealKey): void => {
    if (current !== ring.current) madeAt = at
    ring = { current, older: retired.map(({ key }) => key) }
  }

  return () => {
    const at = now()
    if (at - madeAt >= everyMs) {
      // The key may have sealed something just now.
      retired = [...retired.filter(({ until }) => until > at), { key: ring.current, until: at + keepMs }]
      replace(at, make())
    } else if (retired.some(({ until }) => until <= at)) {
      retired = retired.filter(({ until }) => until > at)
      replace(at, ring.current)
    }
    return ring
  }
}
