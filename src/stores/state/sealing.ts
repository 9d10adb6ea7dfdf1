import { createCipheriv, createDecipheriv } from 'node:crypto'
import { KeyedHash } from '../../std/keyed-hash.ts'
import { NONCE_BYTES, nextNonce } from '../../std/nonces.ts'
import type { KeyRing } from './secret.ts'
import type { RecordKind } from './state-store.ts'

/** The format of what this version seals: the first byte of every sealed body. */
export const STATE_VERSION = 1

const ALGORITHM = 'aes-256-gcm'
const TAG = 16
const CIPHER = { authTagLength: TAG }
const NAME_LENGTH = 24 // in base64url: 18 bytes
const HEAD = 1 + NONCE_BYTES

/** Encrypts and authenticates for one place, so that what is moved to another place cannot be opened there. */
export const sealBody = (key: Buffer, place: string, ...content: readonly Buffer[]): Buffer => {
  const nonce = nextNonce()
  const cipher = createCipheriv(ALGORITHM, key, nonce, CIPHER)
  cipher.setAAD(Buffer.from(place))
  let length = HEAD + TAG
  for (const part of content) length += part.length
  // Of its own: a slice of a shared buffer would keep all of that in memory.
  const sealed = Buffer.allocUnsafeSlow(length)
  sealed[0] = STATE_VERSION
  nonce.copy(sealed, 1)
  let at = HEAD
  for (const part of content) at += cipher.update(part).copy(sealed, at)
  cipher.final()
  cipher.getAuthTag().copy(sealed, at)
  return sealed
}

/** What was sealed for this place with one of the keys; undefined for anything else, also of a newer version. */
export const openBody = (keys: KeyRing, place: string, sealed: Uint8Array): Buffer | undefined => {
  if (sealed.length < HEAD + TAG || sealed[0] !== STATE_VERSION) return undefined
  for (const key of keys) {
    try {
      const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(1, HEAD), CIPHER)
      decipher.setAAD(Buffer.from(place))
      decipher.setAuthTag(sealed.subarray(-TAG))
      return Buffer.concat([decipher.update(sealed.subarray(HEAD, -TAG)), decipher.final()])
    } catch {
      // sealed with another key, or changed
    }
  }
  return undefined
}

/** How a store hides what it holds: ids become hashes, and bodies are sealed. */
export class Sealing {
  readonly #keys: KeyRing
  readonly #names: KeyedHash

  /** `names` is a key that stays the same while secrets are replaced. */
  constructor(keys: KeyRing, names: Buffer) {
    this.#keys = keys
    this.#names = new KeyedHash(names)
  }

  /** The hash that stands for a text in the database. */
  nameOf(text: string): string {
    return this.#names.digest(text).slice(0, NAME_LENGTH)
  }

  recordName(kind: RecordKind, id: string): string {
    return this.nameOf(`${kind}:${id}`)
  }

  seal(place: string, ...content: readonly Buffer[]): Buffer {
    return sealBody(this.#keys[0], place, ...content)
  }

  open(place: string, sealed: Uint8Array): Buffer | undefined {
    return openBody(this.#keys, place, sealed)
  }

  /** A record's body contains its id, because the database has only the hash. */
  sealRecord(name: string, id: string, body: Buffer): Buffer {
    const idLength = Buffer.byteLength(id)
    // One buffer: each that is encrypted by itself costs another call, and memory for its result.
    const content = Buffer.allocUnsafe(2 + idLength + body.length)
    content.writeUInt16BE(idLength)
    content.write(id, 2)
    body.copy(content, 2 + idLength)
    return this.seal(`record:${name}`, content)
  }

  openRecord(name: string, sealed: Uint8Array): { readonly id: string; readonly body: Buffer } | undefined {
    const content = this.open(`record:${name}`, sealed)
    if (!content || content.length < 2) return undefined
    const end = 2 + content.readUInt16BE(0)
    return { id: content.toString('utf8', 2, end), body: content.subarray(end) }
  }
}
