import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { worker } from './children.ts'
import { cpuMicros } from './process-figures.ts'
import type { SessionJob } from './session-streams.ts'
import { type StartedDragoman, startWith } from './start-dragoman.ts'

/** What one start of the program cost until it answered `/healthz`. */
export interface Start {
  readonly cpuMs: number
  readonly wallMs: number
}

type Config = Parameters<typeof startWith>[0]

const kill = async ({ child }: StartedDragoman): Promise<void> => {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

const timeStart = async (config: Config, data: string): Promise<Start> => {
  const begun = performance.now()
  const started = await startWith(config, [], data)
  const start = { wallMs: performance.now() - begun, cpuMs: cpuMicros(started.pid) / 1000 }
  await kill(started)
  return start
}

/** Starts with so many stored sessions and with none, turn by turn. */
export const timeStarts = async (
  config: Config,
  url: (origin: string) => string,
  sessions: number,
  rounds: number,
): Promise<{ stored: Start[]; empty: Start[] }> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-bench-starts-'))
  const full = join(folder, 'full')
  try {
    const open = worker<SessionJob, number>('session-streams')
    const first = await startWith(config, [], full)
    await open({ url: url(first.url), count: sessions, withStream: false })
    await kill(first)
    const stored: Start[] = []
    const empty: Start[] = []
    for (let round = 0; round < rounds; round++) {
      stored.push(await timeStart(config, full))
      empty.push(await timeStart(config, join(folder, `empty-${round}`)))
    }
    return { stored, empty }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
