import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../test/support/cpu-time.ts'
import { CallTable } from './call-table.ts'

describe('CallTable', () => {
  it('behaves as a Map does, while it grows, shrinks and is emptied', () => {
    const table = new CallTable<string, number>()
    const map = new Map<string, number>()
    let state = 7
    const random = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647
      return state % below
    }
    for (const most of [3, 300, 10, 1]) {
      for (let step = 0; step < 3000; step++) {
        const key = `"${random(2 * most)}`
        expect(table.get(key)).toBe(map.get(key))
        if (map.has(key)) {
          expect(table.delete(key)).toBe(map.get(key))
          map.delete(key)
        } else if (map.size < most) {
          table.add(key, step)
          map.set(key, step)
        }
        expect(table.size).toBe(map.size)
      }
      expect(table.values.sort()).toEqual([...map.values()].sort())
      expect(table.keys.sort()).toEqual([...map.keys()].sort())
      for (const key of map.keys()) table.delete(key)
      map.clear()
      expect([table.size, table.keys, table.get('"1'), table.delete('"1')]).toEqual([0, [], undefined, undefined])
    }
  })

  it('finds numbers, and keys that differ in one character only', () => {
    const numbers = new CallTable<number, string>()
    for (let id = 0; id < 100; id++) numbers.add(id * 1024, `call ${id}`)
    expect(numbers.get(50 * 1024)).toBe('call 50')
    const long = new CallTable<string, number>()
    const keys = Array.from({ length: 300 }, (_, at) => `${'x'.repeat(at)}y${'x'.repeat(299 - at)}`)
    for (const [at, key] of keys.entries()) long.add(key, at)
    expect(keys.map(key => long.get(key))).toEqual(keys.map((_, at) => at))
  })

  /** The least CPU of three rounds in which that many keys are added, found and removed. */
  const cpuOf = (keys: readonly string[]): number => {
    const rounds = [1, 2, 3].map(() => {
      const table = new CallTable<string, number>()
      const began = cpuMs()
      for (const [at, key] of keys.entries()) table.add(key, at)
      for (const key of keys) table.get(key)
      for (const key of keys) table.delete(key)
      return cpuMs() - began
    })
    return Math.min(...rounds)
  }

  it.each([128, 1000, 2000])('costs no more for keys of %d characters that differ at few places only', length => {
    const keysOf = (fill: (characters: string[], number: number) => void): string[] =>
      Array.from({ length: 2000 }, (_, number) => {
        const characters = new Array<string>(length).fill('\ud800')
        fill(characters, number)
        return characters.join('')
      })
    const chosen = keysOf((characters, number) => {
      for (let bit = 0; bit < 11; bit++) if ((number >> bit) & 1) characters[bit * 10 + 1] = '\ud801' // no character of UTF-8
    })
    const others = keysOf((characters, number) => {
      for (let at = 0; at < length; at++) characters[at] = String.fromCharCode((number * (at + 7919)) % 9973)
    })
    expect(cpuOf(chosen)).toBeLessThan(3 * cpuOf(others) + 10)
  })
})
