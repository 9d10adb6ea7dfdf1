import { expect, test } from 'vitest'
import { DueQueue } from './due-queue.ts'

test('each thing is due when its own interval has passed, again and again', () => {
  const acted: string[] = []
  const rota = new DueQueue<string>(30, thing => acted.push(thing))
  const due = (now: number): string[] => {
    rota.run(now)
    return acted.splice(0)
  }
  rota.add('a', 0)
  rota.add('b', 10)
  expect(due(29)).toEqual([])
  expect(due(30)).toEqual(['a'])
  expect(due(30)).toEqual([])
  expect(due(45)).toEqual(['b'])
  expect(due(60)).toEqual(['a'])
  rota.delete('b')
  expect(due(1000)).toEqual(['a']) // once, however many intervals were missed
  expect(due(1029)).toEqual([])
})

test('a thing may take itself off while it is acted on', () => {
  const acted: string[] = []
  const rota: DueQueue<string> = new DueQueue(10, thing => {
    acted.push(thing)
    rota.delete(thing)
  })
  for (const thing of ['a', 'b']) rota.add(thing, 0)
  rota.run(10)
  rota.run(20)
  expect(acted).toEqual(['a', 'b'])
})
