import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** A 256-bit key and the name it goes by in what it sealed. */
export interface SealKey {
  readonly id: string // letters, digits, - and _
  readonly key: Uint8Array // 32 bytes
}

/** The key to seal with, and those that may still open. */
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

/** What was sealed with a key of this ring, or undefined for anything else. */
export const unseal = (keyring: Keyring, sealed: string): Buffer | undefined => {
  const dot = sealed.indexOf('.')
  const id = sealed.slice(0, dot)
  const key = [keyring.current, ...(keyring.older ?? [])].find(candidate => candidate.id === id)
  const encoded = sealed.slice(dot + 1)
  const bytes = Buffer.from(encoded, 'base64url')
  // Node skips characters it does not know and ignores spare bits: only the one way we write it is ours.
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
