import type { ChildProcess } from 'node:child_process'
import { nextMessage } from './children.ts'
import type { Target } from './peer.ts'

/** Bytes a process holds after a forced collection. */
export interface Memory {
  readonly rss: number
  readonly heap: number
}

/** A server whose memory can be asked for. */
export interface Probed extends Target {
  memory(): Promise<Memory>
}

export const PROBE_FLAGS = ['--expose-gc', '--import', new URL('./probe.js', import.meta.url).href]

export const probe = ({ url, pid }: Target, child: ChildProcess): Probed => ({
  url,
  pid,
  memory: () => {
    child.send('memory')
    return nextMessage<Memory>(child)
  },
})

/** What each of so many things costs, in KB. */
export const kilobytesEach = (before: Memory, now: Memory, count: number): Memory => ({
  rss: (now.rss - before.rss) / count / 1000,
  heap: (now.heap - before.heap) / count / 1000,
})
