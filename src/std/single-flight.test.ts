import { expect, test } from 'vitest'
import { SingleFlight } from './single-flight.ts'

test('callers share the work in progress, and the next one starts it again, also after a failure', async () => {
  const flight = new SingleFlight<number>()
  const started: ((end: Promise<number>) => void)[] = []
  const work = () => new Promise<number>(resolve => void started.push(resolve))
  const [first, second] = [flight.run(work), flight.run(work)]
  expect([started.length, flight.running]).toEqual([1, first])
  started[0]?.(Promise.reject(new Error('no')))
  await expect(first).rejects.toThrow('no')
  await expect(second).rejects.toThrow('no')
  expect(flight.running).toBeUndefined()
  const third = flight.run(work)
  started[1]?.(Promise.resolve(3))
  expect(await third).toBe(3)
})
