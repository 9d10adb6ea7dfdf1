import { Worker } from 'node:worker_threads'

/** Where a text fits: begin and end of each match, one after the other. */
export type Spans = readonly number[]

/** A regular expression that runs beside the event loop and can be stopped. */
export interface Matcher {
  /** Matches several texts, at most `most` times each; rejects with MatchTimeout. */
  match(texts: readonly string[], most: number, ms: number): Promise<readonly Spans[]>
  close(): void
}

/** The pattern was still busy when its time was over. */
export class MatchTimeout extends Error {}

/**
 * Plain JavaScript in a string, because a thread starts from a file of its own and that would be a .ts before the
 * build and a .js after it.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const pattern = new RegExp(workerData.source, workerData.flags)
const spansOf = (text, most) => {
  const spans = []
  pattern.lastIndex = 0
  for (let found; spans.length < 2 * most && (found = pattern.exec(text)); ) {
    const end = found.index + found[0].length
    spans.push(found.index, end)
    if (end === found.index) pattern.lastIndex++
  }
  return spans
}
parentPort.on('message', ({ texts, most }) => parentPort.postMessage(texts.map(text => spansOf(text, most))))
`

/** Starts a thread for one pattern, which must be a valid global one. */
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

  const match = (texts: readonly string[], most: number, ms: number): Promise<readonly Spans[]> =>
    new Promise((resolve, reject) => {
      const finish = (act: () => void): void => {
        clearTimeout(timer)
        worker.off('message', onMessage).off('exit', onExit)
        act()
      }
      const onMessage = (spans: readonly Spans[]): void => finish(() => resolve(spans))
      const onExit = (): void => finish(() => reject(failed ?? new Error('The search ended too early')))
      const timer = setTimeout(() => finish(() => reject(new MatchTimeout())), Math.max(1, ms))
      worker.on('message', onMessage).on('exit', onExit)
      worker.postMessage({ texts, most })
    })

  return { match, close: () => void worker.terminate() }
}
