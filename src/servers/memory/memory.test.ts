import { expect, test } from 'vitest'
import { noticesOf, talk } from '../../../test/support/embedded.ts'
import { startMemory } from '../../../test/support/memory/memory.ts'

const listed = async (server: Parameters<typeof talk>[0], workspace = 'default') => {
  const list = await (await talk(server, 'resources/list', {}, { caller: { workspace } })).result()
  return (list as { resources: { uri: string; title: string }[] }).resources
}

test('the latest episodes of the tenant are listed as resources', async () => {
  const { server, result } = await startMemory()
  await result('write_memory', { text: 'The cat is called Ludo.' })
  const [only, ...more] = await listed(server)
  expect(more).toEqual([])
  expect(only?.title).toBe('The cat is called Ludo.')
  const read = await (await talk(server, 'resources/read', { uri: only?.uri ?? '' })).result()
  const { contents } = read as { contents: { uri: string; text: string }[] }
  expect(JSON.parse(contents[0]?.text ?? '')).toMatchObject({ content: 'The cat is called Ludo.', group_id: 'main' })
  expect(await listed(server, 'elsewhere')).toEqual([])
  const stranger = await talk(
    server,
    'resources/read',
    { uri: only?.uri ?? '' },
    { caller: { workspace: 'elsewhere' } },
  )
  expect((await stranger.failure()).message).toMatch(/^Unknown resource/)
})

test('an entity is read with the facts about it, a fact with its times, a group with its episodes', async () => {
  const { server, result } = await startMemory()
  const { nodes = [], edges = [] } = await result('add_triplet', {
    source_node_name: 'Ada',
    edge_name: 'KNOWS',
    fact: 'Ada knows Grace',
    target_node_name: 'Grace',
  })
  await result('write_memory', { text: 'A note.' })
  const read = async (uri: string) => {
    const found = (await (await talk(server, 'resources/read', { uri })).result()) as { contents: { text: string }[] }
    return JSON.parse(found.contents[0]?.text ?? '')
  }
  expect(await read(`memory://entity/${nodes[0]?.uuid}`)).toMatchObject({ facts: [{ fact: 'Ada knows Grace' }] })
  expect(await read(`memory://fact/${edges[0]?.uuid}`)).toMatchObject({
    name: 'KNOWS',
    attributes: { origin: 'triplet' },
  })
  expect(await read('memory://group/main')).toMatchObject({ episodes: [{ content: 'A note.' }] })
})

test('a subscriber of a group is notified of its changes, and of none in another tenant', async () => {
  const { server, result } = await startMemory()
  const listen = { notifications: { resourcesListChanged: true, resourceSubscriptions: ['memory://group/main'] } }
  const ours = await talk(server, 'subscriptions/listen', listen)
  const theirs = await talk(server, 'subscriptions/listen', listen, { caller: { workspace: 'elsewhere' } })
  await result('write_memory', { text: 'The cat is called Ludo.' })
  await ours.frame((frame): frame is typeof frame => frame.kind === 'notice' && frame.method.endsWith('/list_changed'))
  const said = noticesOf(ours).map(({ method, params }) => [method, (params as { uri?: string }).uri])
  expect(said).toContainEqual(['notifications/resources/updated', 'memory://group/main'])
  expect(noticesOf(theirs).map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged'])
})

test('the prompt explains how to use memory for the given task', async () => {
  const { server } = await startMemory()
  const got = await (
    await talk(server, 'prompts/get', { name: 'use_memory', arguments: { task: 'bake bread' } })
  ).result()
  expect(JSON.stringify(got)).toMatch(/Search first\..*The task: bake bread/)
})
