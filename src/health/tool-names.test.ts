import { expect, test } from 'vitest'
import { Json } from '../wire/json/json.ts'
import { ToolNames } from './tool-names.ts'

const page = (...names: string[]): Json => Json.of({ tools: names.map(name => ({ name })) })

test('listed names are known, invented ones are not', () => {
  const names = new ToolNames()
  names.add('early')
  names.addPage(page('a', 'b'))
  names.addPage(page('c'))
  expect(['early', 'a', 'b', 'c', 'd', 'constructor', ''].filter(name => names.has(name))).toEqual([
    'early',
    'a',
    'b',
    'c',
  ])
})

test.each<[string, Json]>([
  ['no list', Json.of({})],
  ['a list that is none', Json.of({ tools: 'x' })],
  ['tools that are none', Json.of({ tools: [1, null, { name: 5 }, {}] })],
  ['a name without end', page('x'.repeat(100_000))],
])('%s does no harm', (_name, result) => {
  const names = new ToolNames()
  names.addPage(result)
  expect(names.has('x'.repeat(100_000))).toBe(false)
})

test('the number of unread pages is bounded', () => {
  const names = new ToolNames()
  for (let i = 0; i < 20; i++) names.addPage(page(`p${i}`))
  expect(Array.from({ length: 20 }, (_, i) => `p${i}`).filter(name => names.has(name))).toHaveLength(8)
  for (let i = 0; i < 5000; i++) names.add(`n${i}`)
  expect(Array.from({ length: 5000 }, (_, i) => `n${i}`).filter(name => names.has(name)).length).toBeLessThan(1000)
})
