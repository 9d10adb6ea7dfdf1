import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { DOC_WEIGHTS, stated, tell, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import { openSqlite } from '../../../stores/sqlite.ts'
import { queryTerms } from '../../../text/query.ts'

type Store = Awaited<ReturnType<typeof temporaryStore>>

const bytesOf = async ({ path }: Store): Promise<string> => {
  const files = await Promise.all(['', '-wal', '-shm'].map(end => readFile(path + end, 'latin1').catch(() => '')))
  return files.join('').toLowerCase()
}

/** Words that occur nowhere else; each is looked for alone, as the index keeps it. */
const WORDS = ['quokkafarm', 'zyzzyvabeetle', 'xylophonist', 'brobdingnag', 'hapaxlegom']

const tellSecrets = async (store: Store, group: string): Promise<void> => {
  for (let at = 0; at < 40; at++) {
    await tell(store, `Ann: Number ${at} about ordinary things and weather in Lisbon.`, {
      group: 'kept',
      chain: 'k',
      name: `k${at}`,
    })
    await tell(store, `Wendelin: The ${WORDS.join(' and the ')} of day ${at} were shown to Brunhilde.`, {
      group,
      chain: 'chat',
      name: `s${at}`,
      entities: [{ name: 'Wendelin', summary: 'A quokkafarm owner', aliases: ['Old Wendelquokkafarm'] }],
      facts: [stated('Wendelin', 'OWNS', `Quokkafarm ${at}`)],
      saga: 'xylophonist saga',
    })
  }
}

const expectGone = async (store: Store, words: readonly string[]): Promise<void> => {
  const bytes = await bytesOf(store)
  expect(words.filter(word => bytes.includes(word))).toEqual([])
}

test('after forgetting a group no byte of it is left, in rows or in indexes', async () => {
  const store = await temporaryStore()
  await tellSecrets(store, 'secret')
  expect((await bytesOf(store)).includes('quokkafarm')).toBe(true)
  const proof = await store.forget({ kind: 'group', group: 'secret' }, { actor: 'root' })
  expect(proof).toMatchObject({ clean: true, erased: { docs: 40 } })
  expect(proof.erased.episodes).toHaveLength(40)
  expect(proof.checked).toBeGreaterThan(20)
  await expectGone(store, [...WORDS, 'wendelin', 'brunhilde'])
  expect((await store.stats()).groups).toEqual([expect.objectContaining({ group: 'kept', episodes: 40 })])
  expect((await store.audit(1))[0]).toMatchObject({ actor: 'root', op: 'forget group' })
})

test('after forgetting an entity no byte of what named it is left', async () => {
  const store = await temporaryStore()
  await tellSecrets(store, 'main')
  const [entity] = await store.entitiesNamed(['wendelin'], 'all')
  const proof = await store.forget({ kind: 'entity', uuid: entity?.uuid ?? '' })
  expect(proof.clean).toBe(true)
  await expectGone(store, [...WORDS, 'wendelin', 'brunhilde'])
})

test('after forgetting a subject every text that names it is gone, and others of similar name stay', async () => {
  const store = await temporaryStore()
  await tell(store, 'ann: I met wendelin yesterday in the zoo.', { group: 'a' })
  await tell(store, 'Ann: Wendelina is another person in Bruges.', { group: 'b' })
  await tell(store, 'Wendelin: I am here myself.', { group: 'b', chain: 'c' })
  await tell(store, 'Ann: And I answered.', { group: 'b', chain: 'c' })
  const proof = await store.forget({ kind: 'subject', name: 'WENDELIN', groups: 'all' })
  expect(proof).toMatchObject({ clean: true })
  const left = (await store.episodes({ groups: 'all', limit: 9 })).map(episode => episode.content).toSorted()
  expect(left).toEqual(['Ann: And I answered.', 'Ann: Wendelina is another person in Bruges.'])
  expect((await bytesOf(store)).replaceAll('wendelina', '')).not.toContain('wendelin')
})

test('words that others said too stay theirs, and the index is whole afterwards', async () => {
  const store = await temporaryStore()
  await tellSecrets(store, 'secret')
  await tell(store, 'Ann: The xylophonist played.', { group: 'kept' })
  expect((await store.forget({ kind: 'group', group: 'secret' })).clean).toBe(true)
  const hits = await store.searchDocs({
    terms: queryTerms('xylophonist'),
    groups: 'all',
    limit: 9,
    weights: DOC_WEIGHTS,
  })
  expect(hits.map(hit => hit.text)).toEqual(['The xylophonist played.'])
  const db = await openSqlite(store.path)
  for (const table of ['doc_fts', 'fact_fts', 'entity_fts'])
    await db.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('integrity-check', 1)`)
  expect(await db.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' })
  await db.close()
})

test('what is not there cannot be forgotten, and nothing is', async () => {
  const store = await temporaryStore()
  await tell(store, 'Ann: Hello.')
  await expect(store.forget({ kind: 'entity', uuid: 'missing' })).rejects.toMatchObject({ kind: 'missing' })
  await expect(store.forget({ kind: 'subject', name: ' ', groups: 'all' })).rejects.toMatchObject({ kind: 'invalid' })
  expect((await store.forget({ kind: 'group', group: 'nothing' })).erased.episodes).toEqual([])
  expect(await store.episodes({ groups: 'all', limit: 9 })).toHaveLength(1)
})

test('the name of a forgotten group is not left in the audit trail either', async () => {
  const store = await temporaryStore()
  await tell(store, 'Ann: Something.', { group: 'quokkafarm' })
  await store.clear(['quokkafarm'])
  await tell(store, 'Ann: Something.', { group: 'quokkafarm' })
  await store.forget({ kind: 'group', group: 'quokkafarm' })
  await expectGone(store, ['quokkafarm'])
  expect((await store.audit(9)).map(({ op }) => op)).toEqual(['forget group', 'clear'])
})

test('a subject called like the node of loose sentences takes only what names it', async () => {
  const store = await temporaryStore()
  await tell(store, 'The oven is broken.', { source: 'text', name: 'x' })
  await tell(store, 'Mind the note on the door.', { source: 'text', name: 'y' })
  await store.forget({ kind: 'subject', name: 'note', groups: 'all' })
  expect((await store.episodes({ groups: 'all', limit: 9 })).map(({ content }) => content)).toEqual([
    'The oven is broken.',
  ])
  const [node] = await store.entitiesNamed(['note'], 'all')
  await expect(store.forget({ kind: 'entity', uuid: node?.uuid ?? '' })).rejects.toMatchObject({ kind: 'invalid' })
  expect(await store.episodes({ groups: 'all', limit: 9 })).toHaveLength(1)
})

test('a forgotten subject is gone from titles, given facts, summaries, attributes, communities and waiting work', async () => {
  const store = await temporaryStore()
  await tell(store, 'Ann: He owes us thirty crowns.', { name: 'Call with Zoltanovic' })
  await tell(store, 'Ann: The oven is broken.', {
    entities: [
      { name: 'Oven', summary: 'Bought by zoltanovic', attributes: { from: 'Zoltanovic' } },
      { name: 'Shop', summary: 'Sells ovens', attributes: { town: 'Bruges' } },
    ],
    facts: [stated('Ann', 'SAYS', 'Oven', { attributes: { heard: 'from Zoltanovic' } })],
    jobs: [{ kind: 'extract', payload: { instructions: 'Mind Zoltanovic' } }],
  })
  const facts = [
    stated('Grace', 'KNOWS', 'Zoltanovic', { origin: 'triplet' }),
    stated('Grace', 'THINKS_OF', 'Ann', { fact: 'Grace thinks Ann dislikes Zoltanovic', origin: 'triplet' }),
  ]
  const { entities } = await store.addFacts('main', { entities: [], facts })
  const members = entities.map(({ uuid }) => uuid)
  await store.replaceCommunities(
    ['main'],
    [{ group: 'main', name: 'Grace, Zoltanovic', summary: 'Grace knows Zoltanovic', members }],
  )
  expect(await store.forget({ kind: 'subject', name: 'Zoltanovic', groups: ['main'] })).toMatchObject({ clean: true })
  await expectGone(store, ['zoltanovic'])
  expect((await store.episodes({ groups: 'all', limit: 9 })).map(({ content }) => content)).toEqual([
    'Ann: The oven is broken.',
  ])
  const [shop] = await store.entitiesNamed(['shop'], 'all')
  expect(shop).toMatchObject({ summary: 'Sells ovens', attributes: { town: 'Bruges' } })
})

test('what was deleted from a saga or a community is not quoted by their summaries any more', async () => {
  const store = await temporaryStore()
  const { episode } = await tell(store, 'Ann: The quokkafarm burnt down.', { saga: 'farm' })
  await tell(store, 'Ann: We rebuilt it.', { saga: 'farm' })
  await store.setSagaSummary('main', 'farm', 'The quokkafarm burnt down.', 2)
  const { facts, entities } = await store.addFacts('main', {
    entities: [],
    facts: [stated('Ann', 'OWNS', 'Zyzzyvabeetle'), stated('Ann', 'KNOWS', 'Bob')],
  })
  const members = entities.map(({ uuid }) => uuid)
  await store.replaceCommunities(
    ['main'],
    [{ group: 'main', name: 'Ann, Zyzzyvabeetle, Bob', summary: 'Ann owns Zyzzyvabeetle', members }],
  )
  await store.deleteEpisode(episode.uuid)
  await store.deleteFact(facts[0]?.uuid ?? '')
  expect(await store.saga('main', 'farm')).toMatchObject({ summary: '', summarisedTo: 0 })
  expect(JSON.stringify(await store.communities('all'))).not.toContain('Zyzzyvabeetle')
})

test('no proof is clean while another connection reads the old state, not even the second', async () => {
  const store = await temporaryStore()
  await tellSecrets(store, 'secret')
  const reader = await openSqlite(store.path, { readOnly: true })
  await reader.exec('BEGIN')
  await reader.get('SELECT count(*) FROM episode')
  const proof = await store.forget({ kind: 'group', group: 'secret' })
  expect(proof.clean).toBe(false)
  expect(proof.gone).toBeLessThan(proof.checked)
  expect((await store.forget({ kind: 'group', group: 'secret' })).clean).toBe(false)
  await reader.exec('ROLLBACK')
  await reader.close()
  expect((await store.forget({ kind: 'group', group: 'secret' })).clean).toBe(true)
  await expectGone(store, WORDS)
}, 30_000)

test('what is deleted rather than forgotten is gone from every answer and every row, though not yet from the index’s own pages', async () => {
  const store = await temporaryStore()
  const { episode } = await tell(store, 'Ann: The quokkafarm sentence is whole.', { name: 'x' })
  await tell(store, 'Ann: Something else.', { name: 'y' })
  await store.deleteEpisode(episode.uuid)
  const db = await openSqlite(store.path)
  await db.get('PRAGMA wal_checkpoint(TRUNCATE)')
  await db.close()
  expect(await bytesOf(store)).not.toContain('the quokkafarm sentence')
  const search = { terms: queryTerms('quokkafarm'), groups: 'all', limit: 9, weights: DOC_WEIGHTS } as const
  expect(await store.searchDocs(search)).toEqual([])
})
