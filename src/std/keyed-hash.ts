import { hash } from 'node:crypto'

const BLOCK = 64 // bytes of a block of SHA-256
const DIGEST = 32
const TEXT = 512 // a longer text gets a buffer of its own

/** A key, padded to a block and mixed with a constant, and room for what is hashed after it. */
const padded = (key: Buffer, constant: number, room: number): Buffer => {
  const block = Buffer.alloc(BLOCK + room, constant)
  for (const [at, byte] of key.entries()) block[at] = byte ^ constant
  return block
}

/**
 * HMAC-SHA-256 of short texts with one key (RFC 2104), by two one-shot hashes: the object that `createHmac` makes for
 * each text costs more than its hash.
 */
export class KeyedHash {
  readonly #inner: Buffer
  readonly #outer: Buffer

  /** The key has at most 64 bytes. */
  constructor(key: Buffer) {
    if (key.length > BLOCK) throw new Error(`A key of ${key.length} bytes is longer than a block of ${BLOCK}.`)
    this.#inner = padded(key, 0x36, TEXT)
    this.#outer = padded(key, 0x5c, DIGEST)
  }

  /** In base64url, 43 characters. */
  digest(text: string): string {
    this.#outer.write(hash('sha256', this.#message(text), 'binary'), BLOCK, 'latin1')
    return hash('sha256', this.#outer, 'base64url')
  }

  #message(text: string): Buffer {
    // A character has at most three bytes in UTF-8.
    if (text.length * 3 > TEXT) return Buffer.concat([this.#inner.subarray(0, BLOCK), Buffer.from(text)])
    return this.#inner.subarray(0, BLOCK + this.#inner.write(text, BLOCK))
  }
}
