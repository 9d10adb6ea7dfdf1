import { randomBytes } from 'node:crypto'

/** Bytes of a nonce of AES-GCM. */
export const NONCE_BYTES = 12
const AT_ONCE = 256

let left: Buffer = Buffer.alloc(0)

/** A random nonce that was not used before. They are drawn together: a call of the generator costs more than sealing a short text. */
export const nextNonce = (): Buffer => {
  if (left.length === 0) left = randomBytes(NONCE_BYTES * AT_ONCE)
  const nonce = left.subarray(0, NONCE_BYTES)
  left = left.subarray(NONCE_BYTES)
  return nonce
}
