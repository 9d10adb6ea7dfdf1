import { Worker } from 'node:worker_threads'

/** Begin and end of each match, alternating. */
export type Spans = readonly number[]

/** A regular expression that runs on a thread, so that it blocks no other call and can be stopped. */
export interface Matcher {
  /** Finds at most `max` matches in each text; rejects with MatchTimeout after `ms`. */
  match(texts: readonly string[], max: number, ms: number): Promise<readonly Spans[]>
  close(): void
}

export class MatchTimeout extends Error {}

/**
 * JavaScript in a string: a file would be a .ts before the build and a .js after it.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const pattern = new RegExp(workerData.source, workerData.flags)
const spansOf = (text, max) => {
  const spans = []
  pattern.lastIndex = 0
  for (let found; spans.length < 2 * max && (found = pattern.exec(text)); ) {
    const end = found.index + found[0].length
    spans.push(found.index, end)
    if (end === found.index) pattern.lastIndex++
  }
  return spans
}
parentPort.on('message', ({ texts, max }) => parentPort.postMessage(texts.map(text => spansOf(text, max))))
`

/** Starts a thread for one pattern, which must have the flag `g`. */
export const createMatcher = (pattern: RegExp): Matcher => {
  const worker = new Worker(PROGRAM, {
    eval: true,
    workerData: { source: pattern.source, flags: pattern.flags },
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  })
  let failed: Error | undefined
  worker.on('error', error => {
    failed = error
  })

  const match = (texts: readonly string[], max: number, ms: number): Promise<readonly Spans[]> =>
    new Promise((resolve, reject) => {
      const finish = (act: () => void): void => {
        clearTimeout(timer)
        worker.off('message', onMessage).off('exit', onExit)
        act()
      }
      const onMessage = (spans: readonly Spans[]): void => finish(() => resolve(spans))
      const onExit = (): void => finish(() => reject(failed ?? new Error('The search thread exited')))
      const timer = setTimeout(() => finish(() => reject(new MatchTimeout())), Math.max(1, ms))
      worker.on('message', onMessage).on('exit', onExit)
      worker.postMessage({ texts, max })
    })

  return { match, close: () => void worker.terminate() }
}
