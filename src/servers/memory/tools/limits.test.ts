import { stat } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { talk } from '../../../../test/support/embedded.ts'
import { startMemory } from '../../../../test/support/memory/memory.ts'
import { temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import type { PlainObject } from '../../../wire/json/json.ts'
import { createRemember } from '../remember.ts'

const note = (name: string, episode_body: string, more: PlainObject = {}) => ({ name, episode_body, ...more })
const LONG = Array.from({ length: 20_000 }, (_, at) => at.toString(36)).join('')

describe('overlong arguments', () => {
  test.each([
    ['the name of an entity', { entities: [{ name: LONG }] }, /entities\[0\]\.name\n.* \d+ characters; at most 500/],
    ['an alias', { entities: [{ name: 'Ann', aliases: [LONG] }] }, /entities\[0\]\.aliases\[0\]\n.* \d+ characters/],
    ['an end of a fact', { facts: [{ source: LONG, target: 'b', fact: 'f' }] }, /facts\[0\]\.source\n.*\d+ characters/],
    ['a fact', { facts: [{ source: 'a', target: 'b', fact: LONG }] }, /facts\[0\]\.fact\n.* in episode_body/],
    ['the name of a saga', { saga: LONG }, /saga has \d+ characters; at most 500/],
    ['a uuid', { uuid: LONG }, /uuid has \d+ characters; at most 200/],
    ['a source description', { source_description: LONG }, /source_description has \d+ characters; at most 10000/],
  ])('%s is refused with the reason, and nothing is kept', async (_what, more, reason) => {
    const { call, result } = await startMemory()
    expect((await call('add_memory', note('x', 'y', more))).content[0]?.text).toMatch(reason)
    expect((await result('get_episodes')).message).toBe('No episodes found')
  })

  test('a triplet with an overlong name is rejected', async () => {
    const { result } = await startMemory()
    const triplet = { source_node_name: LONG, edge_name: 'KNOWS', fact: 'f', target_node_name: 'b' }
    expect((await result('add_triplet', triplet)).error).toMatch(/source_node_name has \d+ characters/)
  })

  test('a speaker with a name of a megabyte does not make the file a hundred times as large', async () => {
    const store = await temporaryStore()
    const remember = createRemember({ extracts: false, embeds: false })
    const body = `${LONG}: hello there\n${LONG.slice(9)}: hello`
    await remember(store, { group: 'g', name: 'n', body, source: 'message', sourceDescription: '' })
    await store.close()
    expect((await stat(store.path)).size).toBeLessThan(body.length * 20)
  })
})

test('blank optional arguments count as absent', async () => {
  const { result } = await startMemory()
  const blank = { saga: '', saga_previous_episode_uuid: '', uuid: '', reference_time: '', group_id: '' }
  for (const text of ['Alpha is first.', 'Beta is second.'])
    expect(await result('add_memory', note('x', text, blank))).toMatchObject({
      message: expect.stringMatching(/queued/),
    })
  const { facts = [] } = await result('search_memory_facts', { query: 'Alpha' })
  expect(facts.map(({ fact }) => fact)).toEqual(['Alpha is first.'])
})

test('many episodes of one saga share one job, and none of them waits for it', async () => {
  const { result } = await startMemory()
  for (let at = 0; at < 5; at++)
    await result('add_memory', note(`n${at}`, `Step ${at} is done.`, { saga: 'build', update_communities: true }))
  const { jobs } = (await result('get_memory_jobs')) as { jobs?: readonly { kind: string; episode_uuid: null }[] }
  expect(jobs?.map(({ kind, episode_uuid }) => [kind, episode_uuid])).toEqual([
    ['communities', null],
    ['summarise', null],
  ])
})

test('a list of episodes is limited in bytes, in a tool and in a resource', async () => {
  const { server, result } = await startMemory()
  for (let at = 0; at < 8; at++) await result('add_memory', note(`n${at}`, `${at} ${'word '.repeat(60_000)}`))
  const { episodes = [], message } = await result('get_episodes', { max_episodes: 100 })
  expect(episodes.length).toBeLessThan(8)
  expect(message).toMatch(/more/)
  const read = await talk(server, 'resources/read', { uri: 'memory://group/main' })
  expect(JSON.stringify(await read.result()).length).toBeLessThan(1.5 * 1024 * 1024)
})
