import { expect, it } from 'vitest'
import { Starts } from './process-starts.ts'

it('lets so many start at a time, the others in order, and counts a leaving once', async () => {
  const starts = new Starts(2)
  const order: string[] = []
  const enter = (name: string) =>
    starts.enter().then(leave => {
      order.push(name)
      return leave
    })
  const [a, b] = [await enter('a'), await enter('b')]
  const c = enter('c')
  const d = enter('d')
  await new Promise(setImmediate)
  expect(order).toEqual(['a', 'b'])
  a()
  a()
  const leaveC = await c
  await new Promise(setImmediate)
  expect(order).toEqual(['a', 'b', 'c'])
  b()
  const leaveD = await d
  leaveC()
  leaveD()
  await Promise.all([enter('e'), enter('f')])
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
})
