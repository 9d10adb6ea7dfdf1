import { expect, test } from 'vitest'
import { Abort } from '../protocol/cancellation.ts'
import { NotAcquired, Semaphore } from './semaphore.ts'

test('admits up to its limit, then one caller for each slot that is released, in order', async () => {
  const semaphore = new Semaphore(2)
  const admitted: string[] = []
  const enter = async (name: string): Promise<() => void> => {
    const release = await semaphore.acquire()
    admitted.push(name)
    return release
  }
  const first = await enter('first')
  await enter('second')
  const third = enter('third')
  const fourth = enter('fourth')
  await Promise.resolve()
  expect(admitted).toEqual(['first', 'second'])
  first()
  first() // releasing twice admits one caller only
  const release = await third
  expect(admitted).toEqual(['first', 'second', 'third'])
  release()
  await fourth
})

test('rejects a caller when too many wait, and one that has stopped waiting keeps no place', async () => {
  const semaphore = new Semaphore(1, 1)
  const release = await semaphore.acquire()
  const abort = new Abort()
  const cancelled = semaphore.acquire(abort)
  await expect(semaphore.acquire()).rejects.toMatchObject({ reason: 'full' })
  abort.abort({ kind: 'expired' })
  await expect(cancelled).rejects.toBeInstanceOf(NotAcquired)
  release()
  await expect(semaphore.acquire()).resolves.toBeTypeOf('function')
})
