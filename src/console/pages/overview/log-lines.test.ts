import { expect, test } from 'vitest'
import { appendLog, parseLog, readLogLine } from './log-lines.ts'

const LINE = { time: 1, level: 'stderr', server: 'a', text: 'hello' }

test('lines of the server are read, and nothing else', () => {
  expect(readLogLine(LINE, 'a')).toMatchObject({ time: 1, level: 'stderr', text: 'hello' })
  for (const wrong of [
    undefined,
    null,
    'text',
    {},
    { ...LINE, server: 'b' },
    { ...LINE, text: 5 },
    { ...LINE, time: '1' },
  ])
    expect(readLogLine(wrong, 'a')).toBeUndefined()
  const text = `${JSON.stringify(LINE)}\n\n{"broken\n${JSON.stringify({ ...LINE, server: 'b' })}\n`
  expect(parseLog(text, 'a').map(line => line.text)).toEqual(['hello'])
})

test('only the latest 300 lines are kept, each with an id of its own', () => {
  const many = Array.from({ length: 1000 }, (_, time) => JSON.stringify({ ...LINE, time })).join('\n')
  const lines = parseLog(many, 'a')
  expect(lines.length).toBeLessThanOrEqual(301)
  const [next] = parseLog(JSON.stringify({ ...LINE, text: 'last' }), 'a')
  const all = appendLog(lines, next ? [next] : [])
  expect([all.length, all.at(-1)?.text, new Set(all.map(({ id }) => id)).size]).toEqual([300, 'last', 300])
  expect(appendLog(all, [])).toBe(all)
})
