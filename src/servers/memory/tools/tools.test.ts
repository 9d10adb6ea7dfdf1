import { describe, expect, test } from 'vitest'
import { type Found, startMemory } from '../../../../test/support/memory/memory.ts'
import type { PlainObject } from '../../../wire/json/json.ts'

const note = (name: string, episode_body: string, more: PlainObject = {}) => ({ name, episode_body, ...more })
const factsOf = ({ facts = [] }: Found) => facts.map(({ fact }) => fact)

describe('add_memory', () => {
  test('answers as the contract says, and the next search finds the episode', async () => {
    const { call, result } = await startMemory()
    const added = await call('add_memory', note('Move', 'Nadia moved to Lisbon in March.'))
    expect(added.structuredContent).toEqual({
      result: { message: "Episode 'Move' queued for processing in group 'main'", uuid: expect.any(String) },
    })
    expect(JSON.parse(added.content[0]?.text ?? '')).toEqual(added.structuredContent.result)
    expect(added.isError).toBe(false)
    const found = await result('search_memory_facts', { query: 'Where does Nadia live?' })
    expect(found.message).toBe('Facts retrieved successfully')
    expect(factsOf(found)).toEqual(['Nadia moved to Lisbon in March.'])
  })

  test('stores stated facts, and closes those they supersede', async () => {
    const { result } = await startMemory()
    const stated = {
      source: 'Ola',
      name: 'WORKS_AT',
      target: 'Acme',
      fact: 'Ola works at Acme',
      valid_at: '2022-01-01',
    }
    await result('add_memory', note('Job', 'Ola told me about her job.', { facts: [stated] }))
    const [old] = (await result('search_memory_facts', { query: 'Ola works', edge_types: ['WORKS_AT'] })).facts ?? []
    const next = {
      source: 'Ola',
      name: 'WORKS_AT',
      target: 'Birch',
      fact: 'Ola works at Birch',
      valid_at: '2024-05-01',
    }
    await result(
      'add_memory',
      note('New job', 'Ola changed jobs.', { facts: [{ ...next, supersedes: [old?.uuid ?? ''] }] }),
    )
    const closed = await result('get_entity_edge', { uuid: old?.uuid ?? '' })
    expect(closed).toMatchObject({ invalid_at: '2024-05-01T00:00:00.000Z', expired_at: expect.any(String) })
    const now = await result('search_memory_facts', { query: 'Where does Ola work?', edge_types: ['WORKS_AT'] })
    expect(factsOf(now)[0]).toBe('Ola works at Birch')
  })

  test.each([
    ['an empty body', note('x', '  '), /episode_body is empty/],
    ['a body with zero bytes', note('x', 'PK\u0003\u0000\u0001'), /looks binary/],
    ['10 MiB', note('x', 'word '.repeat(2 * 1024 * 1024)), /at most 2097152 fit into one episode, so split it/],
    ['JSON that is none', note('x', '{"a":', { source: 'json' }), /not valid JSON .*source "text"/],
    ['a group with a slash', note('x', 'y', { group_id: 'a/b' }), /group_id "a\/b" must contain only/],
    ['a group with a quote', note('x', 'y', { group_id: 'a\'"; DROP' }), /must contain only/],
  ])('refuses %s with the reason, and keeps nothing', async (_what, args, reason) => {
    const { call, result } = await startMemory()
    const answer = await call('add_memory', args)
    expect(answer.isError).toBe(false)
    expect((answer.structuredContent.result as Found).error).toMatch(reason)
    expect((await result('get_episodes')).message).toBe('No episodes found')
  })

  const fact = { source: 'a', target: 'b', fact: 'f' }
  test.each<[string, readonly PlainObject[] | PlainObject | string, RegExp]>([
    [
      'that contradict themselves',
      [{ ...fact, valid_at: '2024-01-02', invalid_at: '2024-01-01' }],
      /contradicts itself/,
    ],
    ['without an end', [{ source: 'a', fact: 'f' }], /facts\[0\]\.target\n {2}Field required/],
    ['with a bad date', [{ ...fact, valid_at: 'soon' }], /facts\[0\]\.valid_at\n {2}"soon" is not an ISO 8601 date/],
    ['with a name of signs', [{ ...fact, source: '!?' }], /needs a name with at least one letter or digit/],
    ['with two names of the relation', [{ ...fact, name: 'A', relation: 'B' }], /facts\[0\]\.relation\n.*beside name/],
    ['with a confidence of 2', [{ ...fact, confidence: 2 }], /facts\[0\]\.confidence\n.*from 0 to 1/],
    ['that supersede a missing one', [{ ...fact, supersedes: ['none'] }], /There is no fact none in group main/],
    [
      'that are sentences',
      ['Ann lives in Rome'] as unknown as PlainObject[],
      /facts\[0\]\n {2}Input should be an object/,
    ],
    ['that are no list', fact, /facts\n {2}Input should be a valid list of facts/],
    [
      'of which two are wrong',
      [
        { ...fact, fact: ' ' },
        { ...fact, target: 7 },
      ],
      /2 validation errors.*\n.*\[0\]\.fact\n.*\n.*\[1\]\.target/,
    ],
  ])('facts %s are an error, and nothing is kept', async (_what, facts, reason) => {
    const { call, result } = await startMemory()
    const { isError, content } = await call('add_memory', note('x', 'y', { facts }))
    expect(isError).toBe(true)
    expect(content[0]?.text).toMatch(reason)
    expect((await result('get_episodes')).message).toBe('No episodes found')
  })

  test('answers with the uuids of the episode and of the stated facts', async () => {
    const { result } = await startMemory()
    const facts = [
      { source: 'Ola', relation: 'WORKS_AT', target: 'Acme', fact: 'Ola works at Acme.' },
      { source: 'Ola', name: 'LIKES', target: 'tea', fact: 'Ola likes tea.' },
    ]
    const first = await result('add_memory', note('Job', 'Ola works at Acme.', { facts }))
    expect((await result('get_episodes')).episodes?.[0]?.uuid).toBe(first.uuid)
    const names = []
    for (const uuid of first.fact_uuids as string[]) names.push((await result('get_entity_edge', { uuid })).name)
    expect(names).toEqual(['WORKS_AT', 'LIKES'])
    expect(await result('add_memory', note('Job', 'Ola works at Acme.', { facts: facts.toReversed() }))).toMatchObject({
      fact_uuids: (first.fact_uuids as string[]).toReversed(),
    })
  })

  test('names unknown members of facts and entities, and keeps the rest', async () => {
    const { result } = await startMemory()
    const added = await result('add_memory', {
      ...note('Job', 'A talk.'),
      entities: [{ name: 'Ola', kind: 'Person' }],
      facts: [{ ...fact, weight: 3 }],
    })
    expect(added.warnings).toEqual([
      expect.stringMatching(/^entities\[0\]\.kind is unknown and was ignored; known are name, labels, /),
      expect.stringMatching(/^facts\[0\]\.weight is unknown and was ignored; known are source, name, target, fact, /),
    ])
    expect(added.fact_uuids).toHaveLength(1)
  })

  test.each([
    'yesterday',
    '2024-13-01',
    '2024-02-30',
    '2024-1-1',
    '24:00',
    '2024-01-01T25:00',
    '2024-01-01T10:00+99:00',
    '1700000000',
    ' ,',
  ])('says of the reference time %j that it is none', async reference_time => {
    const { result } = await startMemory()
    const { error } = await result('add_memory', note('x', 'y', { reference_time }))
    expect(error).toMatch(/^Invalid reference_time: ".*" is not an ISO 8601 date; write/)
  })

  test('a lone surrogate becomes U+FFFD', async () => {
    const { result } = await startMemory()
    await result('add_memory', note('x', 'before \ud83d after'))
    expect((await result('get_episodes')).episodes?.[0]?.content).toBe('before \ufffd after')
  })

  test('the same uuid twice replaces the episode', async () => {
    const { result } = await startMemory()
    const uuid = '5a3c1f6e-0d7b-4a44-9d10-0a1b2c3d4e5f'
    await result('add_memory', note('x', 'The keys are under the mat.', { uuid }))
    await result('add_memory', note('x', 'The keys are in the shed.', { uuid }))
    expect((await result('get_episodes')).episodes?.map(({ content }) => content)).toEqual([
      'The keys are in the shed.',
    ])
    expect(factsOf(await result('search_memory_facts', { query: 'keys mat' }))).toEqual(['The keys are in the shed.'])
  })
})

describe('arguments', () => {
  test('all missing ones are named, as clients of the contract expect', async () => {
    const { call } = await startMemory()
    const { isError, content } = await call('add_memory', {})
    expect(isError).toBe(true)
    expect(content[0]?.text).toBe(
      'Error executing tool add_memory: 2 validation errors for add_memoryArguments\n' +
        'name\n  Field required [type=missing]\nepisode_body\n  Field required [type=missing]',
    )
  })

  test('unknown ones are ignored; lists and numbers may be text', async () => {
    const { result } = await startMemory()
    await result('add_memory', note('x', 'Tea is in the left drawer.', { group_id: 'kitchen', wholly: 'strange' }))
    const found = await result('search_memory_facts', { query: 'tea', group_ids: '["kitchen"]', max_facts: '3' })
    expect(factsOf(found)).toEqual(['Tea is in the left drawer.'])
    expect((await result('get_episodes', { group_ids: 'kitchen' })).episodes).toHaveLength(1)
  })

  test.each([
    ['max_facts', { query: 'x', max_facts: 0 }, 'max_facts must be a positive integer'],
    ['max_facts', { query: 'x', max_facts: -3 }, 'max_facts must be a positive integer'],
    ['a date', { query: 'x', valid_at_after: 'someday' }, /^Invalid date filter: valid_at_after: "someday"/],
    ['a centre', { query: 'x', center_node_uuid: 'missing' }, 'center_node_uuid: node missing not found'],
  ])('a bad %s is a failure in the words of the contract', async (_what, args, error) => {
    const { result } = await startMemory()
    expect((await result('search_memory_facts', args)).error).toMatch(error)
  })
})

describe('search', () => {
  test.each([
    '"',
    '*',
    'NEAR(a b)',
    '-',
    'a AND OR NOT',
    "'; DROP TABLE episode; --",
    '^tea',
    'tea:',
    '(',
    '{tea}',
    '',
  ])('the query %j is only words', async query => {
    const { result } = await startMemory()
    await result('add_memory', note('x', 'There is tea.'))
    expect(await result('search_memory_facts', { query })).toMatchObject({ message: expect.stringMatching(/facts/i) })
    expect(await result('search_nodes', { query })).toMatchObject({ message: expect.stringMatching(/nodes/i) })
  })

  test('a query of a thousand words finds its subject', async () => {
    const { result } = await startMemory()
    await result('add_memory', note('x', 'The zeppelin museum opens at nine.'))
    const query = `${'and then we went on and on about it '.repeat(120)} zeppelin museum`
    expect(factsOf(await result('search_memory_facts', { query }))).toEqual(['The zeppelin museum opens at nine.'])
  })

  test('search_episodes finds the original texts with the passages that match', async () => {
    const { result } = await startMemory()
    const talk = 'Ann: The zeppelin museum opens at nine.\nBob: Shall we go by tram?'
    await result('add_memory', note('Plans', talk, { source: 'message', reference_time: '2025-03-01' }))
    await result('add_memory', note('Long', `A zeppelin. ${'Nothing else here. '.repeat(500)}`))
    await result('add_memory', note('Other', 'The oven is broken.'))
    const { message, episodes } = await result('search_episodes', { query: 'When does the zeppelin museum open?' })
    expect(message).toBe('Episodes retrieved successfully')
    expect(episodes).toMatchObject([
      {
        name: 'Plans',
        content: talk,
        source: 'message',
        valid_at: '2025-03-01T00:00:00.000Z',
        passages: [
          { text: 'The zeppelin museum opens at nine.', actor: 'Ann' },
          { text: 'Shall we go by tram?', actor: 'Bob' },
        ],
      },
      {
        name: 'Long',
        passages: expect.arrayContaining([{ text: expect.stringContaining('A zeppelin.'), actor: null }]),
      },
    ])
    expect(episodes?.[1]?.content).toHaveLength(4_001)
    expect(await result('search_episodes', { query: 'zeppelin', max_episodes: 1 })).toMatchObject({ episodes: [{}] })
    expect(await result('search_episodes', { query: 'zeppelin', group_ids: 'other' })).toEqual({
      message: 'No relevant episodes found',
      episodes: [],
    })
    expect((await result('search_episodes', { query: 'x', max_episodes: 0 })).error).toMatch(/positive integer/)
  })

  test.each([
    [
      'What is the rate limit of the API?',
      'The rate limit of the API is 100.',
      'The rate limit of the API is now 250 per minute.',
    ],
    ['When is the release?', 'The release is planned for 10 June 2027.', 'The release is planned for 3 May 2027.'],
    ["Ann's favourite colour", "Ann's favourite colour is blue.", "Ann's favourite colour is green, she says."],
  ])('%j is answered by the newer of two statements first', async (query, older, newer) => {
    for (const inOrder of [true, false]) {
      const { result } = await startMemory()
      const notes = [
        note('a', older, { reference_time: '2026-01-01' }),
        note('b', newer, { reference_time: '2026-02-01' }),
      ]
      for (const added of inOrder ? notes : notes.toReversed()) await result('add_memory', added)
      expect(factsOf(await result('search_memory_facts', { query }))).toEqual([newer, older])
      const { episodes = [] } = await result('search_episodes', { query })
      expect(episodes.map(({ content }) => content)).toEqual([newer, older])
    }
  })

  test('as_of finds what was true then; a fact with an end to come is valid', async () => {
    const { result } = await startMemory()
    const facts = [
      {
        source: 'Ola',
        name: 'WORKS_AT',
        target: 'Acme',
        fact: 'Ola works at Acme',
        valid_at: '2020-01-01',
        invalid_at: '2022-01-01',
      },
      {
        source: 'Ola',
        name: 'WORKS_AT',
        target: 'Birch',
        fact: 'Ola works at Birch',
        valid_at: '2022-01-01',
        invalid_at: '2999-01-01',
      },
    ]
    await result('add_memory', note('Jobs', 'A talk.', { facts }))
    const asOf = async (as_of: string) => factsOf(await result('search_memory_facts', { query: 'Ola works', as_of }))
    expect(await asOf('2019-12-31')).toEqual([])
    expect(await asOf('2021-06-01')).toEqual(['Ola works at Acme'])
    expect(await asOf('2022-01-01')).toEqual(['Ola works at Birch'])
    const [now] = (await result('search_memory_facts', { query: 'Where does Ola work?' })).facts ?? []
    expect(now).toMatchObject({ fact: 'Ola works at Birch', invalid_at: '2999-01-01T00:00:00.000Z', expired_at: null })
    expect((await result('search_memory_facts', { query: 'Ola', as_of: 'then' })).error).toMatch(/as_of: "then"/)
  })

  test('finds entities by name and by label', async () => {
    const { result } = await startMemory()
    const entities = [{ name: 'Tabs over spaces', labels: ['Preference'], summary: 'The user indents with tabs' }]
    await result('add_memory', note('Style', 'The user said how code should look.', { entities }))
    const { nodes } = await result('search_nodes', { query: 'indentation tabs', entity_types: ['Preference'] })
    expect(nodes).toEqual([
      {
        uuid: expect.any(String),
        name: 'Tabs over spaces',
        labels: ['Entity', 'Preference'],
        created_at: expect.stringMatching(/Z$/),
        summary: 'The user indents with tabs',
        group_id: 'main',
        attributes: {},
      },
    ])
    expect(await result('search_nodes', { query: 'tabs', entity_types: ['Procedure'] })).toEqual({
      message: 'No relevant nodes found',
      nodes: [],
    })
  })

  test('groups and tenants are isolated', async () => {
    const { result } = await startMemory({ tenantBy: 'principal' })
    await result('add_memory', note('x', 'The vault opens with 4711.', { group_id: 'a' }), { principal: 'ann' })
    const ask = (group_ids: string, principal: string) =>
      result('search_memory_facts', { query: 'vault', group_ids }, { principal })
    expect(factsOf(await ask('a', 'ann'))).toHaveLength(1)
    expect(factsOf(await ask('b', 'ann'))).toEqual([])
    expect(factsOf(await ask('a', 'bob'))).toEqual([])
  })
})

describe('the other tools', () => {
  test('add_triplet makes two entities and one fact, once', async () => {
    const { result } = await startMemory()
    const triplet = { source_node_name: 'Ada', edge_name: 'KNOWS', fact: 'Ada knows Grace', target_node_name: 'Grace' }
    const first = await result('add_triplet', triplet)
    const second = await result('add_triplet', triplet)
    expect(first.nodes?.map(({ name }) => name).toSorted()).toEqual(['Ada', 'Grace'])
    expect(second.edges?.map(({ uuid }) => uuid)).toEqual(first.edges?.map(({ uuid }) => uuid))
    expect(first.edges?.[0]).toMatchObject({ name: 'KNOWS', fact: 'Ada knows Grace', group_id: 'main' })
  })

  test('missing rows are reported as clients of the contract expect', async () => {
    const { result } = await startMemory()
    const uuid = 'aaaaaaaa-0000-4000-8000-000000000000'
    expect(await result('get_entity_edge', { uuid })).toEqual({
      error: `Error getting entity edge: edge ${uuid} not found`,
    })
    expect(await result('delete_entity_edge', { uuid })).toEqual({
      error: `Error deleting entity edge: edge ${uuid} not found`,
    })
    expect(await result('delete_episode', { uuid })).toEqual({
      error: `Error deleting episode: node ${uuid} not found`,
    })
    expect(await result('summarize_saga', { saga_name: 'no such' })).toEqual({
      error: "Saga 'no such' not found in group 'main'",
    })
    expect((await result('get_episode_entities', { episode_uuids: [] })).error).toMatch(/must not be empty/)
  })

  test('deleting an episode deletes its facts', async () => {
    const { result } = await startMemory()
    await result('add_memory', note('x', 'The spare key hangs behind the clock.'))
    const uuid = (await result('get_episodes')).episodes?.[0]?.uuid ?? ''
    expect((await result('get_episode_entities', { episode_uuids: [uuid] })).edges).toHaveLength(1)
    expect(await result('delete_episode', { uuid })).toEqual({
      message: `Episode with UUID ${uuid} deleted successfully`,
    })
    expect(await result('search_memory_facts', { query: 'spare key' })).toEqual({
      message: 'No relevant facts found',
      facts: [],
    })
  })

  test('clear_graph clears the groups named, and the default for a blank one', async () => {
    const { result } = await startMemory()
    for (const group_id of ['a', 'b', ''])
      await result('add_memory', note('x', `In ${group_id || 'main'}.`, { group_id }))
    expect(await result('clear_graph', { group_ids: ['a', ''] })).toEqual({
      message: 'Graph data cleared successfully for group IDs: a, main',
    })
    const left = await result('get_episodes', { group_ids: ['a', 'b', 'main'] })
    expect(left.episodes?.map(({ content }) => content)).toEqual(['In b.'])
  })

  test('get_status is a bare object with counts', async () => {
    const { call, result } = await startMemory()
    await result('add_memory', note('x', 'Something.'))
    const { structuredContent } = await call('get_status')
    expect(structuredContent).toEqual({ status: 'ok', message: expect.stringMatching(/1 episodes.*0 jobs pending/) })
  })

  test('a saga is summarised in its own words', async () => {
    const { result } = await startMemory()
    for (const [day, body] of [
      'We decided to migrate to Postgres.',
      'The migration failed on a foreign key.',
      'The migration is done.',
    ].entries())
      await result('add_memory', note(`Day ${day}`, body, { saga: 'migration', reference_time: `2025-01-0${day + 1}` }))
    expect(await result('summarize_saga', { saga_name: 'migration' })).toMatchObject({
      message: 'Saga summarized successfully',
      name: 'migration',
      summary: 'We decided to migrate to Postgres. The migration failed on a foreign key. The migration is done.',
    })
  })

  test('communities are connected entities', async () => {
    const { result } = await startMemory()
    for (const [source, target] of [
      ['Ann', 'Bob'],
      ['Bob', 'Cid'],
      ['Ann', 'Cid'],
      ['Xia', 'Yue'],
    ])
      await result('add_triplet', {
        source_node_name: source,
        edge_name: 'KNOWS',
        fact: `${source} knows ${target}`,
        target_node_name: target,
      })
    const built = await result('build_communities')
    expect(built).toMatchObject({ message: 'Communities built successfully', community_count: 2, edge_count: 5 })
    expect(await result('build_communities', { group_ids: 'empty' })).toMatchObject({ community_count: 0 })
  })

  test('export, import and export again give the same lines, page by page', async () => {
    const { result } = await startMemory()
    for (let at = 0; at < 30; at++) await result('add_memory', note(`n${at}`, `Note ${at}: ${'long '.repeat(8000)}`))
    const exported = async (workspace: string): Promise<string> => {
      let lines = ''
      for (let start: unknown = 0; start !== null; ) {
        const part = await result('export_memory', { start: start as number }, { workspace })
        lines += part.jsonl
        start = part.next
      }
      return lines
    }
    const before = await exported('default')
    expect(await result('import_memory', { jsonl: before }, { workspace: 'other' })).toMatchObject({
      imported: { episodes: 30 },
    })
    expect(await exported('other')).toBe(before)
    expect(await result('import_memory', { jsonl: before })).toMatchObject({ imported: { episodes: 0 } })
    expect((await result('import_memory', { jsonl: 'invalid input' })).error).toBeTruthy()
  })

  test('forget erases a subject and proves it', async () => {
    const { result } = await startMemory()
    await result('add_memory', note('x', 'Zoltan owes us 30 crowns.'))
    await result('add_memory', note('y', 'The oven is broken.'))
    expect((await result('forget', {})).error).toMatch(/exactly one of group_id, entity_uuid, subject; 0 were given/)
    expect(await result('forget', { subject: 'Zoltan' })).toMatchObject({
      message: expect.stringMatching(/^Erased 1 episodes, .*no byte of them is left/),
      proof: { clean: true, erased: { episodes: [expect.any(String)] } },
    })
    expect((await result('get_episodes')).episodes?.map(({ content }) => content)).toEqual(['The oven is broken.'])
    expect((await result('forget', { subject: 'Zoltan' })).message).toBe('Nothing was there to forget')
  })

  test('write_memory takes one argument and returns the uuid', async () => {
    const { result } = await startMemory()
    const written = await result('write_memory', { text: 'The cat is called Ludo.' })
    expect(written).toEqual({ message: 'Remembered', uuid: expect.any(String), group_id: 'main' })
    expect((await result('get_episodes')).episodes?.[0]).toMatchObject({
      uuid: written.uuid,
      name: 'The cat is called Ludo.',
    })
  })
})
