import { expect, test } from 'vitest'
import { SilentServers } from './silent-servers.ts'

const SECOND = 1000

/** The waits between tries of a server that never responds. */
const waitsOf = (silent: SilentServers<object>, server: object, tries: number, start: number): number[] => {
  const waits: number[] = []
  let now = start
  for (let at = 0; at < tries; at++) {
    silent.didNotRespond(server, now)
    const until = silent.get(server)?.until ?? now
    waits.push((until - now) / SECOND)
    now = until
  }
  return waits
}

test('a server is left alone for as long as it has been silent, ten minutes at most', () => {
  const waits = waitsOf(new SilentServers(), {}, 10, 5 * SECOND)
  expect(waits).toEqual([10, 10, 20, 40, 80, 160, 320, 600, 600, 600])
})

test('several tries at a time count once', () => {
  const silent = new SilentServers()
  const server = {}
  for (let at = 0; at < 10; at++) silent.didNotRespond(server, at)
  expect(silent.get(server)?.until).toBe(9 + 10 * SECOND)
})

test('the wait begins anew after a response, and is that of one server', () => {
  const silent = new SilentServers()
  const [server, other] = [{}, {}]
  waitsOf(silent, server, 6, 0)
  expect(silent.get(other)).toBeUndefined()
  silent.hasResponded(server)
  expect(silent.get(server)).toBeUndefined()
  expect(waitsOf(silent, server, 3, 1e6)).toEqual([10, 10, 20])
})
