import { expect, it } from 'vitest'
import type { Frame } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { FrameBuffer } from './frame-buffer.ts'

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
  const buffer = new FrameBuffer(sink, () => {
    isOverflowing = true
  })
  return { buffer, taken, resume: () => go?.(), isOverflowing: () => isOverflowing }
}

it('passes frames on at once while the reader keeps up', () => {
  const taken: Frame[] = []
  const buffer = new FrameBuffer(
    frame => void taken.push(frame),
    () => {},
  )
  buffer.put(notice('a'))
  buffer.put(END)
  expect(taken).toHaveLength(2)
})

it('keeps the order for a reader that is behind, and of progress only the latest', async () => {
  const { buffer, taken, resume } = slowReader()
  const kept = [notice('a'), progress(1), notice('b'), progress(2), progress(3), END]
  buffer.put(notice('first'))
  for (const frame of kept) buffer.put(frame)
  expect(taken).toHaveLength(1)
  resume()
  await new Promise(setImmediate)
  expect(taken.slice(1)).toEqual([kept[0], kept[4], kept[2], kept[5]])
})

it.each([
  ['frames', 1001, 1],
  ['bytes', 5, 1024 * 1024],
])(
  'ends the call of a reader that is too far behind in %s, and still delivers the last frame',
  async (_, count, size) => {
    const { buffer, taken, resume, isOverflowing } = slowReader()
    buffer.put(notice('first'))
    for (let i = 0; i < count; i++) buffer.put(notice('x'.repeat(size)))
    expect(isOverflowing()).toBe(true)
    buffer.put(notice('late'))
    buffer.put(END)
    resume()
    await new Promise(setImmediate)
    expect(taken.slice(1)).toEqual([END])
  },
)
