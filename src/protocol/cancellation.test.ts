import { expect, test } from 'vitest'
import { Abort, type AbortReason } from './cancellation.ts'

const GONE: AbortReason = { kind: 'gone' }

test('a listener that throws keeps no other from hearing the end, and its error is not lost', async () => {
  const reported = new Promise<unknown>(resolve => {
    const others = process.rawListeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.once('uncaughtException', error => {
      for (const other of others) process.on('uncaughtException', other as NodeJS.UncaughtExceptionListener)
      resolve(error)
    })
  })
  const abort = new Abort()
  const heard: AbortReason[] = []
  const bug = new Error('a bug')
  abort.onAbort(() => {
    throw bug
  })
  abort.onAbort(reason => heard.push(reason))
  abort.abort(GONE)
  expect(heard).toEqual([GONE])
  expect(await reported).toBe(bug)
})
