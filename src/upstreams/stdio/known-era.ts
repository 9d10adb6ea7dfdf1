import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Era } from '../probe.ts'
import type { Handshake } from '../session/handshake.ts'
import { LegacySupport } from '../session/legacy-support.ts'
import type { OpenedProcess } from './open-process.ts'

/** What the processes of a program have asked their clients: nothing, only for roots, or during calls. */
export type QuestionHabit = 'nothing' | 'roots' | 'anything'

interface KnownProgram {
  readonly era: Era
  readonly at: number
  readonly handshake: Handshake | undefined
  readonly legacy: LegacySupport
  readonly asks: QuestionHabit
}

const MOST_PROGRAMS = 1000

/** What is known of the programs that servers run. It outlives their configuration: a changed server runs the same program. */
export class KnownEras extends BoundedCache<KnownProgram> {
  constructor() {
    super(MOST_PROGRAMS, Number.POSITIVE_INFINITY)
  }
}

/** The era of one program, and its answer to `initialize`. */
export class KnownEra {
  readonly #programs: KnownEras
  readonly #key: string
  readonly #configured: 'auto' | Era
  readonly #legacyMs: number
  readonly #unknown: LegacySupport

  /** `fingerprint` names the program; a configured era says nothing about servers that configure none. */
  constructor(programs: KnownEras, fingerprint: string, configured: 'auto' | Era, legacyMs: number) {
    this.#programs = programs
    this.#key = `${configured} ${fingerprint}`
    this.#configured = configured
    this.#legacyMs = legacyMs
    this.#unknown = new LegacySupport(legacyMs)
  }

  get era(): Era | undefined {
    return this.#configured === 'auto' ? this.#known?.era : this.#configured
  }

  /** Of a legacy session. */
  get handshake(): Handshake | undefined {
    return this.#known?.handshake
  }

  /** Whether the server, if modern, accepts legacy sessions too. */
  get legacy(): LegacySupport {
    return this.#known?.legacy ?? this.#unknown
  }

  get asks(): QuestionHabit {
    return this.#known?.asks ?? 'nothing'
  }

  recordQuestion(method: string): void {
    const known = this.#known
    const asks = method === 'roots/list' && known?.asks !== 'anything' ? 'roots' : 'anything'
    if (known && known.asks !== asks) this.#programs.set(this.#key, { ...known, asks })
  }

  detected(opened: OpenedProcess): void {
    const known = this.#known
    const same = known?.era === opened.era ? known : undefined
    this.#programs.set(this.#key, {
      era: opened.era,
      at: same?.at ?? Date.now(),
      handshake: opened.era === 'legacy' ? opened.handshake : same?.handshake,
      legacy: same?.legacy ?? new LegacySupport(this.#legacyMs),
      asks: same?.asks ?? 'nothing',
    })
  }

  /** A process of a modern server accepted `initialize`. */
  legacyAccepted(handshake: Handshake): void {
    const {
      era = 'modern',
      at = Date.now(),
      legacy = new LegacySupport(this.#legacyMs),
      asks = 'nothing',
    } = this.#known ?? {}
    legacy.confirm()
    this.#programs.set(this.#key, { era, at, handshake, legacy, asks })
  }

  /** The program behaved unlike its era: the next process is probed. */
  forget(): void {
    this.#programs.delete(this.#key)
  }

  /** Legacy expires, because an upgraded server still answers `initialize`. */
  get #known(): KnownProgram | undefined {
    const known = this.#programs.get(this.#key)
    return known?.era === 'legacy' && Date.now() - known.at > this.#legacyMs ? undefined : known
  }
}
