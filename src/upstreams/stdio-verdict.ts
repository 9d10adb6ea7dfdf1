import type { Era } from './probe.ts'
import type { Greeting, Opened } from './stdio-opening.ts'

interface Known {
  readonly era: Era
  readonly at: number
  readonly greeting: Greeting | undefined
}

// For the life of the gateway: a server that is configured anew is the same program.
const known = new Map<string, Known>()
const MOST_KNOWN = 1000

/** What was found out about a program: how it speaks, and how it introduced itself. */
export interface Verdict {
  readonly era: Era | undefined
  readonly greeting: Greeting | undefined
  found(opened: Opened): void
  /** It behaved otherwise: it is asked again. */
  forget(): void
}

/** A legacy verdict ends by itself, for an upgraded server still answers `initialize`. */
export const createVerdict = (fingerprint: string, configured: 'auto' | Era, legacyMs: number): Verdict => {
  const look = (): Known | undefined => {
    const found = known.get(fingerprint)
    return found?.era === 'legacy' && Date.now() - found.at > legacyMs ? undefined : found
  }
  return {
    get era() {
      return configured === 'auto' ? look()?.era : configured
    },
    get greeting() {
      return look()?.greeting
    },
    found: opened => {
      if (known.size >= MOST_KNOWN) known.clear()
      const at = look()?.era === opened.era ? (look()?.at ?? Date.now()) : Date.now()
      known.set(fingerprint, { era: opened.era, at, greeting: opened.era === 'legacy' ? opened.greeting : undefined })
    },
    forget: () => void known.delete(fingerprint),
  }
}
