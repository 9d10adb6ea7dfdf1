import { randomBytes } from 'node:crypto'
import type { Keyring, SealKey } from './seal.ts'

interface Options {
  readonly everyMs: number // a new key
  readonly keepMs: number // how long something sealed may have to be opened
  readonly now?: () => number
}

interface Retired {
  readonly key: SealKey
  readonly until: number // nothing sealed with it lives longer
}

/**
 * Random keys of this process, replaced in time; a replaced one opens as long as something sealed with it can live.
 * Whoever seals or opens asks for the ring each time: the keys change then, and no timer runs.
 */
export const createKeyring = ({ everyMs, keepMs, now = () => Date.now() }: Options): (() => Keyring) => {
  const origin = randomBytes(3).toString('hex')
  let made = 0
  const make = (): SealKey => ({ id: `${origin}-${++made}`, key: randomBytes(32) })

  let madeAt = now()
  let retired: readonly Retired[] = []
  let ring: Keyring = { current: make() }

  const replace = (at: number, current: SealKey): void => {
    if (current !== ring.current) madeAt = at
    ring = { current, older: retired.map(({ key }) => key) }
  }

  return () => {
    const at = now()
    if (at - madeAt >= everyMs) {
      // It may have sealed something a moment ago.
      retired = [...retired.filter(({ until }) => until > at), { key: ring.current, until: at + keepMs }]
      replace(at, make())
    } else if (retired.some(({ until }) => until <= at)) {
      retired = retired.filter(({ until }) => until > at)
      replace(at, ring.current)
    }
    return ring
  }
}
