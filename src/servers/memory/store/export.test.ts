import { describe, expect, onTestFinished, test } from 'vitest'
import { ENGINES } from '../../../../test/support/memory/engines.ts'
import {
  DAY,
  DOC_WEIGHTS,
  FACT_WEIGHTS,
  linesOf,
  START,
  stated,
  tell,
} from '../../../../test/support/memory/sqlite-store.ts'
import type { Sql, SqlRow } from '../../../stores/sql.ts'
import { queryTerms } from '../../../text/query.ts'
import { StoreError } from '../store.ts'
import { exportLines, writeBackup } from './export.ts'
import { openMemoryFile } from './sqlite-file.ts'

describe.each(ENGINES)('$name', ({ temporaryStore }) => {
  const lives = (place: string, day: number) =>
    stated('Ann', 'LIVES_IN', place, { singleValued: true, validAt: START + day * DAY, granularity: 'day' })

  const furnished = async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: The tower in Pisa leans.\nBob: 東京タワー is straight, says "Zoë".', {
      chain: 'chat',
      saga: 'towers',
      facts: [lives('Rome', 0)],
      entities: [
        { name: 'Ann', aliases: ['Annie', 'A. N. Other'], summary: 'A "traveller"\n', attributes: { age: 7 } },
      ],
      meta: { of: ['anything'] },
    })
    await tell(store, 'Bob: Ann moved in May 2023.', {
      chain: 'chat',
      saga: 'towers',
      facts: [lives('Oslo', 9)],
      jobs: [{ kind: 'extract' }],
    })
    await tell(store, '{"name": "Acme", "ceo": {"name": "Cy"}}', { source: 'json', group: 'work' })
    const saga = (await store.episodes({ groups: 'all', limit: 1, saga: 'towers', order: 'arrival' }))[0]
    await store.setSagaSummary('main', 'towers', 'About towers', saga?.id ?? 0)
    const members = (await store.entities(['main'], 2)).map(entity => entity.uuid)
    await store.replaceCommunities('all', [{ group: 'main', name: 'People', summary: 'Some', members }])
    return store
  }

  test('export, import and export again give the same lines', async () => {
    const [store, copy] = [await furnished(), await temporaryStore()]
    const lines = await linesOf(store)
    const counts = await copy.importLines(lines)
    expect(counts).toMatchObject({ episodes: 3, sagas: 1, communities: 1, same: 0 })
    expect(await linesOf(copy)).toEqual(lines)
    expect(lines.length).toBeGreaterThan(15)
  })

  test('search finds imported rows like stored ones', async () => {
    const [store, copy] = [await furnished(), await temporaryStore()]
    await copy.importLines(await linesOf(store))
    for (const each of [store, copy]) {
      const docs = await each.searchDocs({
        terms: queryTerms('straight tower'),
        groups: ['main'],
        limit: 9,
        weights: DOC_WEIGHTS,
      })
      expect(docs.map(doc => [doc.text, doc.next])).toContainEqual([
        'The tower in Pisa leans.',
        expect.stringContaining('Bob: '),
      ])
      const facts = await each.searchFacts({
        terms: queryTerms('where ann lives'),
        groups: ['main'],
        limit: 9,
        weights: FACT_WEIGHTS,
      })
      expect(facts.map(fact => fact.fact).toSorted()).toEqual(['Ann lives in Oslo', 'Ann lives in Rome'])
      expect((await each.factsOfDocs(docs.map(doc => doc.id))).length).toBeGreaterThan(1)
    }
  })

  test('importing twice changes nothing, and importing into a store that knows some of it adds the rest', async () => {
    const [store, copy] = [await furnished(), await temporaryStore()]
    const lines = await linesOf(store)
    await copy.importLines(lines)
    expect(await copy.importLines(lines)).toMatchObject({ episodes: 0, entities: 0, facts: 0 })
    expect(await linesOf(copy)).toEqual(lines)
    const other = await temporaryStore()
    await tell(other, 'ANN: I was here before.')
    await other.importLines(lines)
    expect((await other.entities(['main'], 99)).filter(entity => entity.name.toLowerCase() === 'ann')).toHaveLength(1)
  })

  test('one group can be exported alone', async () => {
    const store = await furnished()
    const lines: string[] = []
    for await (const line of store.exportLines(['work'])) lines.push(line)
    expect(lines.slice(1).map(line => JSON.parse(line).group)).toEqual(lines.slice(1).map(() => 'work'))
    const copy = await temporaryStore()
    expect(await copy.importLines(lines)).toMatchObject({ episodes: 1 })
  })

  test('an export is of one moment, whatever is written meanwhile', async () => {
    const store = await furnished()
    const before = await linesOf(store)
    const during: string[] = []
    for await (const line of store.exportLines('all')) {
      during.push(line)
      if (during.length === 2) await tell(store, 'Ann: In between.')
    }
    expect(during).toEqual(before)
  })

  const HEADER = '{"type":"dragoman-memory","version":1}'

  test.each([
    ['nothing', [], /empty/],
    [
      'the file of another program',
      ['{"type":"entity","name":"x","entityType":"y","observations":[]}'],
      /not an export/,
    ],
    ['a later version', ['{"type":"dragoman-memory","version":2}'], /version 2/],
    ['a line that is no JSON', [HEADER, '{'], /Line 2 .* not JSON/],
    ['a line that is no object', [HEADER, '[]'], /Line 2 .* not an object/],
    ['an unknown type', [HEADER, '{"type":"wish"}'], /Line 2 .* unknown type "wish"/],
    [
      'an episode without a text',
      [HEADER, '{"type":"episode","uuid":"u","group":"g","name":"n"}'],
      /Line 2 .* "content"/,
    ],
    [
      'a fact about an unknown entity',
      [HEADER, '{"type":"fact","uuid":"u","group":"g","name":"n","fact":"f","source":"a","target":"b"}'],
      /Line 2 .* entity a/,
    ],
    [
      'a date that is none',
      [HEADER, '{"type":"saga","uuid":"u","group":"g","name":"n","created_at":"soon"}'],
      /Line 2 .* "created_at"/,
    ],
  ])('an import of %s is refused with the line', async (_, lines, message) => {
    const store = await temporaryStore()
    await expect(store.importLines(lines)).rejects.toThrow(message)
    expect((await store.stats()).groups).toEqual([])
  })

  test('an import cannot join groups, nor make one that no caller could name', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: The tower in Pisa leans.', { group: 'a' })
    const lines = await linesOf(store)
    const moved = lines.map(line => line.replaceAll('"group":"a"', '"group":"b"'))
    await expect(store.importLines(moved)).rejects.toThrow(/is in group a here, not in b/)
    const strange = lines.map(line => line.replaceAll('"group":"a"', '"group":"a/b"'))
    await expect(store.importLines(strange)).rejects.toThrow(/names a group "a\/b"/)
    expect(await store.groups()).toEqual(['a'])
  })

  test('an import that was cut short is made whole by the next', async () => {
    const store = await temporaryStore()
    const { facts } = await tell(store, 'Ann: One.', { saga: 's', facts: [stated('Ann', 'LIKES', 'Tea')] })
    await tell(store, 'Ann: Two.', {
      saga: 's',
      facts: [stated('Ann', 'LIKES', 'Coffee', { supersedes: [facts[0]?.uuid ?? ''] })],
    })
    for (let at = 0; at < 60; at++) await tell(store, `Bob: ${at}.`, { validAt: START + (at + 1) * DAY })
    await store.setSagaSummary('main', 's', 'One. Two.', 2)
    const lines = await linesOf(store)
    const other = await temporaryStore()
    await expect(other.importLines([...lines, ...Array(4).fill(lines.slice(1)).flat(), 'nonsense'])).rejects.toThrow(
      /is not JSON/,
    )
    expect((await other.stats()).groups).toEqual([expect.objectContaining({ expired: 1 })])
    await other.importLines(lines)
    expect(await linesOf(other)).toEqual(lines)
  })
})

test('a page of an export of one group is read without sorting all rows of the group', async () => {
  const db = await openMemoryFile(':memory:')
  onTestFinished(() => db.close())
  const sorted: string[] = []
  const explaining: Sql = {
    ...db,
    all: async <Row = SqlRow>(sql: string, ...values: Parameters<Sql['all']>[1][]) => {
      const steps = await db.all<{ parent: number; detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values)
      if (steps.some(({ parent, detail }) => parent === 0 && /TEMP B-TREE/.test(detail))) sorted.push(sql)
      return [] as Row[]
    },
  }
  for (const groups of [['main'], ['main', 'other']]) for await (const _ of exportLines(explaining, groups));
  expect(sorted).toEqual([])
})

test('a backup says what the database says, and names the file only if that cannot be written', async () => {
  const failing = (error: Error) => writeBackup('/tmp/backup.db', () => Promise.reject(error))
  await expect(failing(new StoreError('busy', 'cannot be reached'))).rejects.toMatchObject({ kind: 'busy' })
  await expect(failing(new Error('no such folder'))).rejects.toMatchObject({ kind: 'invalid' })
})
