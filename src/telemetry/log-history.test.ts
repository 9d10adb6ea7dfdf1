import { expect, it, vi } from 'vitest'
import { SILENT } from './log.ts'
import { LogHistory, type LogLine, withHistory } from './log-history.ts'

const textsOf = (lines: readonly LogLine[]) => lines.map(({ level, server, text }) => [level, server, text])

it('keeps lines with their server and fields, and what servers write whatever the level is', () => {
  const history = new LogHistory()
  const info = vi.fn()
  const log = withHistory({ ...SILENT, info, child: () => SILENT }, history)
  log.info({ port: 1, secret: undefined }, 'gateway started')
  const server = log.child({ server: 'github' })
  server.warn({ reason: 'gone', err: new Error('broken') }, 'server restarted')
  server.keepOutput?.('listening')
  server.debug({}, 'request ended')
  log.error({ server: 'other' }, 'server failed')
  expect(textsOf(history.lines())).toEqual([
    ['info', undefined, 'gateway started  port=1'],
    ['warn', 'github', 'server restarted  reason=gone err=broken'],
    ['stderr', 'github', 'listening'],
    ['error', 'other', 'server failed'],
  ])
  expect(textsOf(history.lines('github')).length).toBe(2)
  expect(info).toHaveBeenCalledWith({ port: 1, secret: undefined }, 'gateway started')
  expect(log.isLevelEnabled?.('debug')).toBe(false)
})

it('hides credentials, and tells followers until they leave', () => {
  const history = new LogHistory()
  const seen: LogLine[] = []
  const leave = history.follow(line => seen.push(line))
  history.add({ time: 1, level: 'info', text: 'Authorization: Bearer abcdefghijklmnop' })
  leave()
  history.add({ time: 2, level: 'info', text: 'later' })
  expect(textsOf(seen)).toEqual([['info', undefined, 'Authorization: Bearer [hidden]']])
})

it('is bounded in lines and in characters', () => {
  const history = new LogHistory()
  for (let time = 0; time < 20_000; time++) history.add({ time, level: 'info', text: `line ${time}` })
  expect(history.lines().length).toBeLessThanOrEqual(5500)
  expect(history.lines().at(-1)?.text).toBe('line 19999')
  for (let time = 0; time < 500; time++) history.add({ time, level: 'stderr', text: 'x'.repeat(10_000) })
  const characters = history.lines().reduce((sum, { text }) => sum + text.length, 0)
  expect(characters).toBeLessThanOrEqual(1024 * 1024)
  expect(history.lines().length).toBeGreaterThan(10)
})
