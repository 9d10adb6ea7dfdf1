import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Caller, openCaller } from './caller.ts'
import type { Ready } from './contestant.ts'
import { cpuMicros } from './process-figures.ts'
import { scenario } from './scenarios.ts'

/** What a start costs until the first right answer to a small call, with the session that it needs. */
export interface FirstAnswer {
  readonly wallMs: number
  readonly cpuMs: number
}

const MOST_MS = 30_000
const ATTEMPT_MS = 5_000
const PAUSE_MS = 5

const attempt = ({ url, dialect }: Ready): Promise<Caller> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${ATTEMPT_MS} ms`)), ATTEMPT_MS)
    openCaller({ url: new URL(url) }, dialect, scenario('echo'), reject)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })

/** Calls a contestant again and again until its answer is right. */
export const untilAnswered = async (target: Ready): Promise<FirstAnswer> => {
  const deadline = Date.now() + MOST_MS
  for (;;) {
    try {
      const caller = await attempt(target)
      const answer = { wallMs: Date.now() - target.startedAt, cpuMs: cpuMicros(target.pid) / 1000 }
      await Promise.race([caller.close(), sleep(1_000)])
      return answer
    } catch (error) {
      if (!existsSync(`/proc/${target.pid}`)) throw new Error('its process ended before it answered', { cause: error })
      if (Date.now() > deadline) throw error
      await sleep(PAUSE_MS)
    }
  }
}
