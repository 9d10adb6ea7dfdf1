import { randomBytes } from 'node:crypto'
import type { EndedSignIns } from './ended-sign-ins.ts'
import type { Sealer } from './server/sealer.ts'

const VALID_MS = 10 * 60_000

/** A code of a link that signs its user in once. */
export interface SignInCode {
  readonly code: string
  readonly expires: number // Unix time in milliseconds
}

interface SealedCode {
  readonly id: string
  readonly expires: number
}

/** The codes of one-time links to the console. A code is sealed, so every replica accepts it; the store knows which were used. */
export class SignInCodes {
  readonly #sealer: Sealer
  readonly #ended: Pick<EndedSignIns, 'add'>

  constructor(sealer: Sealer, ended: Pick<EndedSignIns, 'add'>) {
    this.#sealer = sealer
    this.#ended = ended
  }

  create(): SignInCode {
    const content: SealedCode = { id: randomBytes(12).toString('base64url'), expires: Date.now() + VALID_MS }
    return { code: this.#sealer.seal('console-link', content, VALID_MS), expires: content.expires }
  }

  /** Whether a code is valid; it is not afterwards. Rejects if the store cannot tell. */
  async take(code: string): Promise<boolean> {
    const sealed = this.#sealer.open<SealedCode>('console-link', code)
    return sealed !== undefined && (await this.#ended.add(sealed.id, sealed.expires))
  }
}
