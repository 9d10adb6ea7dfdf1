import { describe, expect, it } from 'vitest'
import { SlotList } from './slot-list.ts'

const entriesOf = (...names: string[]) => names.map(name => ({ name, slot: -1 }))
const namesIn = (list: Iterable<{ readonly name: string }>): string => [...list].map(({ name }) => name).join('')

describe('SlotList', () => {
  it('keeps what was added and not removed, whichever is removed', () => {
    for (const removed of [0, 1, 2, 3]) {
      const list = new SlotList<{ name: string; slot: number }>()
      const all = entriesOf('a', 'b', 'c', 'd')
      for (const entry of all) list.add(entry)
      const [gone] = all.splice(removed, 1)
      expect(gone && list.delete(gone)).toBe(true)
      expect(list.size).toBe(3)
      expect(namesIn(list.entries.sort((a, b) => (a.name < b.name ? -1 : 1)))).toBe(namesIn(all))
      for (const entry of all) expect(list.entries[entry.slot]).toBe(entry)
    }
  })

  it('ignores an entry that is added twice, or removed without being in the list', () => {
    const list = new SlotList<{ name: string; slot: number }>()
    const [a, b] = entriesOf('a', 'b') as [{ name: string; slot: number }, { name: string; slot: number }]
    list.add(a)
    list.add(a)
    expect(list.delete(b)).toBe(false)
    expect(namesIn(list)).toBe('a')
    expect(list.delete(a)).toBe(true)
    expect(list.delete(a)).toBe(false)
    expect(list.size).toBe(0)
    list.add(a)
    expect(namesIn(list)).toBe('a')
  })

  it('can be changed while its entries are gone through', () => {
    const list = new SlotList<{ name: string; slot: number }>()
    for (const entry of entriesOf('a', 'b', 'c')) list.add(entry)
    const seen: string[] = []
    for (const entry of list.entries) {
      seen.push(entry.name)
      list.delete(entry)
    }
    expect(seen).toEqual(['a', 'b', 'c'])
    expect(list.size).toBe(0)
  })

  it('takes the entries of a cleared list again', () => {
    const list = new SlotList<{ name: string; slot: number }>()
    const all = entriesOf('a', 'b')
    for (const entry of all) list.add(entry)
    list.clear()
    expect([list.size, ...all.map(({ slot }) => slot)]).toEqual([0, -1, -1])
    for (const entry of all) list.add(entry)
    expect(namesIn(list)).toBe('ab')
  })
})
