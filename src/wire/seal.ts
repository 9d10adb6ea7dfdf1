import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { NONCE_BYTES as NONCE, nextNonce } from '../std/nonces.ts'

/** A 256-bit key, and the id that sealed texts name it by. */
export interface SealKey {
  readonly id: string // letters, digits, - and _
  readonly key: Uint8Array // 32 bytes
}

const ALGORITHM = 'aes-256-gcm'
const TAG = 16

/** Encrypts and authenticates: nonce, ciphertext and tag. Only `unsealBytes` with the same key and purpose opens it. */
export const sealBytes = (key: Uint8Array, purpose: string, content: Uint8Array | string): Buffer =>
  encrypt(key, purpose, content, nextNonce())

const encrypt = (key: Uint8Array, purpose: string, content: Uint8Array | string, nonce: Buffer): Buffer => {
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG })
  cipher.setAAD(Buffer.from(purpose))
  const text = typeof content === 'string' ? cipher.update(content, 'utf8') : cipher.update(content)
  return Buffer.concat([nonce, text, cipher.final(), cipher.getAuthTag()])
}

/** The content that was sealed with this key for this purpose; undefined for anything else. */
export const unsealBytes = (key: Uint8Array, purpose: string, sealed: Buffer): Buffer | undefined => {
  if (sealed.length < NONCE + TAG) return undefined
  try {
    const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAAD(Buffer.from(purpose))
    decipher.setAuthTag(sealed.subarray(-TAG))
    return Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()])
  } catch {
    return undefined
  }
}

/** Encrypts and authenticates: `<key id>.<base64url of nonce, ciphertext and tag>`. */
export const seal = ({ id, key }: SealKey, content: Uint8Array | string): string =>
  `${id}.${sealBytes(key, id, content).toString('base64url')}`

/** The content that was sealed with this key; undefined for anything else. */
export const unseal = ({ id, key }: SealKey, sealed: string): Buffer | undefined => {
  if (!sealed.startsWith(`${id}.`)) return undefined
  const encoded = sealed.slice(id.length + 1)
  const bytes = Buffer.from(encoded, 'base64url')
  // Node ignores unknown characters and spare bits when it decodes: accept only the encoding that seal writes.
  return bytes.toString('base64url') === encoded ? unsealBytes(key, id, bytes) : undefined
}

/** As `sealBytes`, but the same content always gives the same bytes: for ids that clients compare. */
export const sealBytesStably = (key: Uint8Array, purpose: string, content: string): Buffer => {
  const nonce = createHmac('sha256', key).update(`${purpose}\0${content}`).digest().subarray(0, NONCE)
  return encrypt(key, purpose, content, nonce)
}
