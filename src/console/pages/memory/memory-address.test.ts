import { describe, expect, it, vi } from 'vitest'

vi.stubGlobal('location', { hash: '' })
const { memoryHref, memoryQuery, readMemoryPlace } = await import('./memory-address.ts')

const read = (path: string[], query = '') => readMemoryPlace(path, new URLSearchParams(query))

describe('an address of the page', () => {
  it('is read and written', () => {
    const place = read(['entity', 'a/b'], 'q=x+y&group=main&asOf=2025-05-01&tenant=principal%3Aann&server=mine')
    expect(place).toEqual({
      view: 'entity',
      id: 'a/b',
      query: 'x y',
      server: 'mine',
      tenant: 'principal:ann',
      group: 'main',
      asOf: '2025-05-01',
    })
    expect(memoryHref(place)).toBe(
      '#/memory/entity/a%2Fb?q=x+y&server=mine&tenant=principal%3Aann&group=main&asOf=2025-05-01',
    )
  })
  it.each([
    [['entity'], ''],
    [['nothing'], ''],
    [[], ''],
    [['constructor'], ''],
  ])('that is unknown leads to the search: %j', (path, query) => {
    expect(read(path, query)).toMatchObject({ view: 'search', id: undefined })
  })
  it('with a date that does not exist has none', () => {
    expect(read(['timeline'], 'asOf=2025-13-01').asOf).toBeUndefined()
    expect(read(['timeline'], 'asOf=yesterday').asOf).toBeUndefined()
  })
})

it('the query of a request names the memory, and the end of the day', () => {
  expect(memoryQuery(read(['search']))).toBe('')
  const query = new URLSearchParams(memoryQuery(read(['search'], 'asOf=2025-05-01&group=a'), { q: 'x' }))
  expect([query.get('group'), query.get('q')]).toEqual(['a', 'x'])
  expect(Date.parse(query.get('asOf') ?? '')).toBe(new Date('2025-05-01T23:59:59').getTime())
})
