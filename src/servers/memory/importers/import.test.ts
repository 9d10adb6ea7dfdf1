import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import { createRemember } from '../remember.ts'
import type { MemoryStore } from '../store.ts'
import { importFrom } from './import.ts'

const remember = createRemember({ extracts: false, embeds: false })

const importing = (store: MemoryStore) => {
  const run = (source: Parameters<typeof importFrom>[0]['source'], options: { format?: string; group?: string } = {}) =>
    importFrom({
      source,
      store,
      remember,
      by: {},
      format: options.format,
      given: options.group,
      group: 'main',
      progress: () => {},
    })
  const text = (content: string, options: { format?: string; group?: string; chunk?: number } = {}) =>
    run({ stream: chunks(content, options.chunk ?? 7) }, options)
  const all = () => store.episodes({ groups: 'all', limit: 1000, order: 'arrival' })
  return { run, text, all }
}

/** In pieces that end in the middle of everything. */
const chunks = async function* (content: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(content)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const jsonl = (...records: readonly object[]): string => records.map(record => `${JSON.stringify(record)}\n`).join('')

describe('a file of the reference memory server', () => {
  const file = jsonl(
    { type: 'entity', name: 'John_Smith', entityType: 'person', observations: ['Speaks fluent Spanish', 'Zürich'] },
    { type: 'entity', name: 'Anthropic', entityType: 'organization', observations: [] },
    { type: 'relation', from: 'John_Smith', to: 'Anthropic', relationType: 'works_at' },
  )

  it('becomes entities, facts and observations, once however often imported', async () => {
    const store = await temporaryStore()
    const { text, all } = importing(store)
    expect(await text(file)).toMatchObject({ format: 'server-memory', created: 1, entities: 1, facts: 1, faulty: 0 })
    expect((await all()).map(({ name, content }) => [name, content])).toEqual([
      ['John_Smith', 'John_Smith: Speaks fluent Spanish\nJohn_Smith: Zürich'],
    ])
    const [john] = await store.entitiesNamed(['john smith'], ['main'])
    expect(john?.labels).toContain('person')
    const facts = await store.facts('all', 100)
    expect(facts.find(({ name }) => name === 'WORKS_AT')).toMatchObject({ fact: 'John_Smith works at Anthropic' })
    const before = await store.stats()
    expect(await text(file)).toMatchObject({ created: 0, replaced: 0, same: 1 })
    expect((await store.stats()).groups).toEqual(before.groups)
  })

  it('may be the result of read_graph, too', async () => {
    const store = await temporaryStore()
    const graph = {
      entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }],
      relations: [{ from: 'Ann', to: 'Bob', relationType: 'knows' }],
    }
    expect(await importing(store).text(JSON.stringify(graph, undefined, 2))).toMatchObject({
      format: 'server-memory',
      created: 1,
      facts: 1,
    })
  })

  it('reports invalid lines and imports the rest', async () => {
    const store = await temporaryStore()
    const broken = `${file}{"type":"entity"}\nnonsense\n{"type":"relation","from":"a"}\n[1]\n${jsonl({
      type: 'entity',
      name: 'Last',
      entityType: 'thing',
      observations: ['is kept'],
    })}`
    const { created, faulty, faults } = await importing(store).text(broken)
    expect([created, faulty]).toEqual([2, 4])
    expect(faults).toEqual([
      { where: 'line 4', why: 'is an entity without a "name"' },
      { where: 'line 5', why: 'is not JSON' },
      { where: 'line 6', why: 'is a relation without "from", "to" or "relationType"' },
      { where: 'line 7', why: 'is not an object' },
    ])
  })
})

describe('episodes of Graphiti', () => {
  const episode = (uuid: string, more: object = {}) => ({
    uuid,
    name: 'Standup',
    content: `Ann shipped ${uuid}`,
    created_at: '2025-03-01T10:00:00+00:00',
    source: 'text',
    source_description: 'notes',
    group_id: 'team',
    ...more,
  })

  it('keep their uuid, group and time, from lines, an array or the answer of get_episodes', async () => {
    const [one, two] = [
      episode('e-1'),
      episode('e-2', { valid_at: '2024-01-02T03:04:05Z', source: 'EpisodeType.message' }),
    ]
    for (const content of [
      jsonl(one, two),
      JSON.stringify([one, two]),
      JSON.stringify({ message: 'ok', episodes: [one, two] }, undefined, 2),
      JSON.stringify({ result: { message: 'ok', episodes: [one, two] } }),
    ]) {
      const store = await temporaryStore()
      const { text, all } = importing(store)
      expect(await text(content)).toMatchObject({ format: 'graphiti', created: 2, faulty: 0 })
      expect(await all()).toMatchObject([
        { uuid: 'e-1', group: 'team', validAt: Date.parse('2025-03-01T10:00:00Z'), sourceDescription: 'notes' },
        { uuid: 'e-2', source: 'message', validAt: Date.parse('2024-01-02T03:04:05Z') },
      ])
      expect(await text(content)).toMatchObject({ created: 0, same: 2 })
    }
  })

  it('go to the group that was asked for, and invalid ones are reported', async () => {
    const store = await temporaryStore()
    const { text, all } = importing(store)
    const wrong = [episode('a', { content: '' }), episode('b', { created_at: 'soon' }), { fact: 'x', group_id: 'g' }]
    const { faults } = await text(jsonl(...wrong, episode('c', { group_id: 'a/b' })))
    expect(faults.map(({ why }) => why)).toEqual([
      'has no "content"',
      'has no date in "created_at"',
      'is a fact, not an episode',
      'has a group_id that cannot be used: "a/b"',
    ])
    await text(jsonl(episode('d', { group_id: 'a/b' })), { group: 'other' })
    expect((await all()).map(({ group }) => group)).toEqual(['other'])
  })
})

describe('a chat', () => {
  const at = Date.parse('2025-05-01T09:00:00Z') / 1000
  const messages = [
    { role: 'user', content: 'Where did I park?', create_time: at },
    { role: 'assistant', content: [{ type: 'text', text: 'On Elm Street.\nNote: level 2' }], create_time: at + 5 },
    { role: 'tool', content: null },
    { author: { role: 'user' }, content: { parts: ['Thanks!'] }, create_time: at + 86_400 },
  ]

  it('is one episode per day, in every chat format', async () => {
    for (const content of [JSON.stringify(messages, undefined, 1), jsonl(...messages), JSON.stringify({ messages })]) {
      const store = await temporaryStore()
      const { text, all } = importing(store)
      expect(await text(content)).toMatchObject({ format: 'chat', created: 2, faulty: 0 })
      expect((await all()).map(({ content, source, validAt }) => [content, source, validAt])).toEqual([
        ['user: Where did I park?\nassistant: On Elm Street. Note: level 2', 'message', at * 1000],
        ['user: Thanks!', 'message', (at + 86_400) * 1000],
      ])
      expect(await text(content)).toMatchObject({ created: 0, same: 2 })
    }
  })

  it('with retries is its current branch', async () => {
    const node = (id: string, parent: string | null, role: string, said: string) => ({
      [id]: {
        id,
        parent,
        message: { author: { role }, content: { content_type: 'text', parts: [said] }, create_time: at },
      },
    })
    const conversation = {
      title: 'Cars',
      id: 'c1',
      current_node: 'c',
      mapping: {
        ...node('a', null, 'user', 'first'),
        ...node('b', 'a', 'assistant', 'dropped'),
        ...node('c', 'a', 'assistant', 'second'),
      },
    }
    const store = await temporaryStore()
    const { text, all } = importing(store)
    await text(JSON.stringify([conversation], undefined, 2))
    expect(await all()).toMatchObject([{ name: 'Cars, 2025-05-01', content: 'user: first\nassistant: second' }])
  })

  it('in "actor: text" lines is detected', async () => {
    const store = await temporaryStore()
    const { text, all } = importing(store)
    const transcript = '[2025-05-01 09:00] Ann: hello\nmore\n[2025-05-01 09:01] Bob Ray: hi\nAnn: bye\n'
    expect(await text(transcript)).toMatchObject({ format: 'chat', created: 1 })
    expect(await all()).toMatchObject([{ content: 'Ann: hello\nmore\nBob Ray: hi\nAnn: bye', validAt: at * 1000 }])
  })

  it('reports records that are no message', async () => {
    const store = await temporaryStore()
    const { faults } = await importing(store).text(jsonl(...messages, { x: 1 }))
    expect(faults).toEqual([{ where: 'line 5', why: 'is not a message: it needs a speaker and a text' }])
  })
})

describe('a folder of notes', () => {
  const write = async (folder: string, files: Readonly<Record<string, string>>) => {
    for (const [name, content] of Object.entries(files)) {
      await mkdir(join(folder, name, '..'), { recursive: true })
      await writeFile(join(folder, name), content)
    }
  }

  it('is an episode per text, with its relative path and its time', async () => {
    const folder = await temporaryFolder()
    await write(folder, {
      'a.md': '# Plans\n\nWe ship in May.\n',
      'deep/b.txt': 'Ann likes tea.',
      'deep/c.png': '\0',
      'deep/empty.md': '',
      'broken.md': 'x\0y',
      '.git/config.txt': 'hidden',
      'node_modules/x/readme.md': 'installed',
    })
    await utimes(join(folder, 'a.md'), 1_700_000_000, 1_700_000_000)
    const store = await temporaryStore()
    const { run, all } = importing(store)
    const report = await run({ path: folder })
    expect(report).toMatchObject({ created: 2, passedOver: 2, faulty: 1 })
    expect(report.faults).toEqual([{ where: 'broken.md', why: expect.stringContaining('looks binary') }])
    expect((await all()).map(({ name, validAt }) => [name, validAt])).toEqual([
      ['a.md', 1_700_000_000_000],
      ['deep/b.txt', expect.any(Number)],
    ])
    await write(folder, { 'a.md': '# Plans\n\nWe ship in June.\n' })
    await utimes(join(folder, 'deep/b.txt'), 1_700_000_001, 1_700_000_001)
    expect(await run({ path: folder })).toMatchObject({ created: 0, replaced: 1, same: 1 })
    expect((await all()).map(({ content }) => content)).toEqual(['# Plans\n\nWe ship in June.', 'Ann likes tea.'])
  })

  it('may have a text of any length, cut between sections; removed sections are deleted', async () => {
    const folder = await temporaryFolder()
    const section = (number: number) => `# Part ${number}\n\n${'All work and no play. '.repeat(4000)}\n\n`
    const parts = Array.from({ length: 12 }, (_, number) => section(number))
    await write(folder, { 'long.md': parts.join('') })
    const store = await temporaryStore()
    const { run, all } = importing(store)
    await run({ path: join(folder, 'long.md') })
    const names = (await all()).map(({ name }) => name)
    expect(names.length).toBeGreaterThan(2)
    expect(names.slice(0, 2)).toEqual(['long.md', 'long.md (2)'])
    expect(
      (await all())
        .map(({ content }) => content.match(/# Part \d+/g)?.length)
        .reduce<number>((a, b) => a + (b ?? 0), 0),
    ).toBe(12)
    await write(folder, { 'long.md': parts[0] ?? '' })
    expect(await run({ path: join(folder, 'long.md') })).toMatchObject({ replaced: 1, removed: names.length - 1 })
    expect(await all()).toHaveLength(1)
  })
})

describe('an export of this program', () => {
  it('is restored, and an invalid line is reported', async () => {
    const store = await temporaryStore()
    await importing(store).text('Ann: hi\nBob: hello\nAnn: bye\n')
    const lines: string[] = []
    for await (const line of store.exportLines('all')) lines.push(line)
    const other = await temporaryStore()
    expect(await importing(other).text(`${lines.join('\n')}\n`)).toMatchObject({ format: 'dragoman', created: 1 })
    const copy: string[] = []
    for await (const line of other.exportLines('all')) copy.push(line)
    expect(copy).toEqual(lines)
    await expect(importing(other).text(`${lines.join('\n')}\n{`)).rejects.toThrow(
      `Line ${lines.length + 1} of the import is not JSON`,
    )
    await expect(importing(other).text(lines.join('\n'), { group: 'g' })).rejects.toThrow('without a group')
  })
})

describe('invalid input', () => {
  it.each([
    ['', 'nothing in it'],
    ['\n \n', 'nothing in it'],
    ['GIF89a\0\0', 'looks binary'],
  ])('%j is refused', async (content, message) => {
    await expect(importing(await temporaryStore()).text(content)).rejects.toThrow(message)
  })

  it('differs from a document that breaks off', async () => {
    const { text, all } = importing(await temporaryStore())
    const { created, faults } = await text('[{"role":"user","content":"kept"},\n{"role":"user","con')
    expect([created, faults]).toEqual([1, [{ where: 'the document', why: 'breaks off in line 2' }]])
    expect(await all()).toHaveLength(1)
  })

  it('in a format name is rejected', async () => {
    const { run, text } = importing(await temporaryStore())
    await expect(run({ path: '/no/such/place' })).rejects.toThrow('there is no such file or folder')
    await expect(text('x', { format: 'excel' })).rejects.toThrow('There is no format "excel"; there are dragoman,')
  })
})
