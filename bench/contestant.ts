// The process a contestant lives in: `node contestant.js <name> <upstream url> <upstream pid>`.
import type { Dialect, Peer, Target } from './peer.ts'

/** What a contestant's process says once it can be called. */
export interface Ready extends Target {
  readonly about: string
  readonly dialect: Dialect
  readonly startedAt: number
}

const [name, url, pid] = process.argv.slice(2)
const { peer } = (await import(`./peers/${name}.js`)) as { peer: Peer }
const target = await peer.start({ url: url ?? '', pid: Number(pid) })
process.once('disconnect', () => process.exit())
const startedAt = target.startedAt ?? performance.timeOrigin
process.send?.({ ...target, startedAt, about: peer.about, dialect: peer.dialect } satisfies Ready)
