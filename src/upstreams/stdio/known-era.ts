import type { Era } from '../probe.ts'
import { LegacyLeg } from '../session/legacy-leg.ts'
import type { Greeting, Opened } from './open-process.ts'

interface Known {
  readonly era: Era
  readonly at: number
  readonly greeting: Greeting | undefined
  readonly leg: LegacyLeg
}

// For the life of the gateway: a server that is configured anew is the same program.
const known = new Map<string, Known>()
const MOST_KNOWN = 1000

/** What was found out about a program: how it speaks, and how it introduced itself. */
export interface Verdict {
  readonly era: Era | undefined
  readonly greeting: Greeting | undefined // of a legacy session
  readonly leg: LegacyLeg // of a modern server
  found(opened: Opened): void
  /** A process of a modern server took `initialize`. */
  foundLeg(greeting: Greeting): void
  /** It behaved otherwise: it is asked again. */
  forget(): void
}

/** A legacy verdict ends by itself, for an upgraded server still answers `initialize`. */
export const createVerdict = (fingerprint: string, configured: 'auto' | Era, legacyMs: number): Verdict => {
  const key = `${configured} ${fingerprint}` // what an entry with an era of its own meets says nothing of the others
  const unknownLeg = new LegacyLeg(legacyMs)
  const look = (): Known | undefined => {
    const found = known.get(key)
    return found?.era === 'legacy' && Date.now() - found.at > legacyMs ? undefined : found
  }
  const keep = (found: Known): void => {
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(key, found)
  }
  return {
    get era() {
      return configured === 'auto' ? look()?.era : configured
    },
    get greeting() {
      return look()?.greeting
    },
    get leg() {
      return look()?.leg ?? unknownLeg
    },
    found: opened => {
      const before = look()
      const same = before?.era === opened.era ? before : undefined
      keep({
        era: opened.era,
        at: same?.at ?? Date.now(),
        greeting: opened.era === 'legacy' ? opened.greeting : same?.greeting,
        leg: same?.leg ?? new LegacyLeg(legacyMs),
      })
    },
    foundLeg: greeting => {
      const { era = 'modern', at = Date.now(), leg = new LegacyLeg(legacyMs) } = look() ?? {}
      leg.found()
      keep({ era, at, greeting, leg })
    },
    forget: () => void known.delete(key),
  }
}
