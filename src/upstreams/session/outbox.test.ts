import { expect, it } from 'vitest'
import type { Frame } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { Outbox } from './outbox.ts'

const notice = (text: string): Frame => ({ kind: 'notice', method: 'notifications/message', params: Json.of({ text }) })
const progress = (value: number): Frame => ({
  kind: 'notice',
  method: 'notifications/progress',
  params: Json.of({ progress: value }),
})
const END: Frame = { kind: 'result', result: Json.of({}) }

/** A reader that takes one frame and then nothing until told. */
const slowReader = () => {
  const taken: Frame[] = []
  let go: (() => void) | undefined
  let isOverflowing = false
  const sink = (frame: Frame): void | Promise<void> => {
    taken.push(frame)
    if (taken.length === 1)
      return new Promise<void>(resolve => {
        go = resolve
      })
  }
  const outbox = new Outbox(sink, () => {
    isOverflowing = true
  })
  return { outbox, taken, resume: () => go?.(), isOverflowing: () => isOverflowing }
}

it('passes frames on at once while the reader keeps up', () => {
  const taken: Frame[] = []
  const outbox = new Outbox(
    frame => void taken.push(frame),
    () => {},
  )
  outbox.put(notice('a'))
  outbox.put(END)
  expect(taken).toHaveLength(2)
})

it('keeps the order for a reader that is behind, and of progress only the latest', async () => {
  const { outbox, taken, resume } = slowReader()
  const kept = [notice('a'), progress(1), notice('b'), progress(2), progress(3), END]
  outbox.put(notice('first'))
  for (const frame of kept) outbox.put(frame)
  expect(taken).toHaveLength(1)
  resume()
  await new Promise(setImmediate)
  expect(taken.slice(1)).toEqual([kept[0], kept[4], kept[2], kept[5]])
})

it.each([
  ['frames', 1001, 1],
  ['bytes', 5, 1024 * 1024],
])('gives up a reader that is too far behind in %s, and tells it so', async (_, count, size) => {
  const { outbox, taken, resume, isOverflowing } = slowReader()
  outbox.put(notice('first'))
  for (let i = 0; i < count; i++) outbox.put(notice('x'.repeat(size)))
  expect(isOverflowing()).toBe(true)
  outbox.put(notice('late'))
  outbox.put(END)
  resume()
  await new Promise(setImmediate)
  expect(taken.slice(1)).toEqual([END])
})
