import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** A 256-bit key, and the id that sealed texts name it by. */
export interface SealKey {
  readonly id: string // letters, digits, - and _
  readonly key: Uint8Array // 32 bytes
}

const ALGORITHM = 'aes-256-gcm'
const NONCE = 12
const TAG = 16

/** Encrypts and authenticates: `<key id>.<base64url of nonce, text and tag>`. */
export const seal = ({ id, key }: SealKey, content: Uint8Array | string): string => {
  const nonce = randomBytes(NONCE)
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG })
  cipher.setAAD(Buffer.from(id))
  const text = typeof content === 'string' ? cipher.update(content, 'utf8') : cipher.update(content)
  return `${id}.${Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()]).toString('base64url')}`
}

/** The content that was sealed with this key; undefined for anything else. */
export const unseal = ({ id, key }: SealKey, sealed: string): Buffer | undefined => {
  if (!sealed.startsWith(`${id}.`)) return undefined
  const encoded = sealed.slice(id.length + 1)
  const bytes = Buffer.from(encoded, 'base64url')
  // Node ignores unknown characters and spare bits when it decodes: accept only the encoding that seal writes.
  if (bytes.length < NONCE + TAG || bytes.toString('base64url') !== encoded) return undefined
  try {
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAAD(Buffer.from(id))
    decipher.setAuthTag(bytes.subarray(-TAG))
    return Buffer.concat([decipher.update(bytes.subarray(NONCE, -TAG)), decipher.final()])
  } catch {
    return undefined
  }
}
