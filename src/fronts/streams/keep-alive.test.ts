import { expect, test } from 'vitest'
import { DueQueue } from './keep-alive.ts'

test('each item is due whenever its interval has passed', () => {
  const acted: string[] = []
  const queue = new DueQueue<string>(30, item => acted.push(item))
  const due = (now: number): string[] => {
    queue.run(now)
    return acted.splice(0)
  }
  queue.add('a', 0)
  queue.add('b', 10)
  expect(due(29)).toEqual([])
  expect(due(30)).toEqual(['a'])
  expect(due(30)).toEqual([])
  expect(due(45)).toEqual(['b'])
  expect(due(60)).toEqual(['a'])
  queue.delete('b')
  expect(due(1000)).toEqual(['a']) // once, however many intervals were missed
  expect(due(1029)).toEqual([])
})

test('an item may be deleted while it is acted on', () => {
  const acted: string[] = []
  const queue: DueQueue<string> = new DueQueue(10, item => {
    acted.push(item)
    queue.delete(item)
  })
  for (const item of ['a', 'b']) queue.add(item, 0)
  queue.run(10)
  queue.run(20)
  expect(acted).toEqual(['a', 'b'])
})
