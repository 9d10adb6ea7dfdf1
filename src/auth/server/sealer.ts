import { sealBytes, unsealBytes } from '../../wire/seal.ts'

/** What a sealed text is for. One sealed for one purpose is not accepted for another. */
export type SealPurpose =
  | 'visitor'
  | 'sign-in'
  | 'issuer'
  | 'consent'
  | 'disconnect'
  | 'console'
  | 'console-mcp'
  | 'console-link'

interface Sealed {
  readonly until: number
  readonly content: unknown
}

const LONGEST = 8192 // characters

/** Seals what the gateway hands to a browser and wants back unchanged: cookies and hidden fields. */
export class Sealer {
  readonly #keys: readonly [Uint8Array, ...Uint8Array[]]

  /** The first key seals, all of them open. */
  constructor(keys: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#keys = keys
  }

  seal(purpose: SealPurpose, content: object, ttlMs: number): string {
    const sealed: Sealed = { until: Date.now() + ttlMs, content }
    return sealBytes(this.#keys[0], `oauth ${purpose}`, JSON.stringify(sealed)).toString('base64url')
  }

  /** What was sealed for this purpose and has not expired; undefined for anything else. */
  open<T extends object>(purpose: SealPurpose, text: string | null | undefined): T | undefined {
    if (!text || text.length > LONGEST) return undefined
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.toString('base64url') !== text) return undefined // Node ignores characters that do not belong there
    for (const key of this.#keys) {
      const opened = unsealBytes(key, `oauth ${purpose}`, bytes)
      if (!opened) continue
      const { until, content } = JSON.parse(opened.toString()) as Sealed
      return Date.now() < until ? (content as T) : undefined
    }
    return undefined
  }
}
