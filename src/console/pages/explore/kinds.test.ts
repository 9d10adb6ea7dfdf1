import { describe, expect, test } from 'vitest'
import { readItem, searchItems } from './kinds.ts'
import { readChoices, readTargets } from './targets.ts'

describe('items', () => {
  test('take what is text, and have a key in any case', () => {
    expect(readItem('tools', { name: 'a', title: 1, annotations: { title: 'A' }, description: '' })).toMatchObject({
      key: 'a',
      title: 'A',
      description: undefined,
    })
    expect(readItem('resources', { uri: 'x:y', name: 'n' })).toMatchObject({ key: 'x:y', name: 'n' })
    expect(readItem('tools', { name: { toString: 'x' } }).key).toBe('(no name)')
  })

  test('are found by all words, in name, title and description', () => {
    const items = [
      readItem('tools', { name: 'list_files', description: 'Shows a folder' }),
      readItem('tools', { name: 'read_file', title: 'Read' }),
    ]
    expect(searchItems(items, '  FILE folder').map(({ key }) => key)).toEqual(['list_files'])
    expect(searchItems(items, '')).toBe(items)
    expect(searchItems(items, 'none')).toEqual([])
  })
})

test('a workspace with one server of its name is that server', () => {
  const workspaces = [
    {
      name: 'all',
      url: '',
      servers: [
        { name: 'a', state: 'ready' as const },
        { name: 'b', state: 'down' as const },
      ],
    },
    { name: 'b', url: '', servers: [{ name: 'b', state: 'down' as const, reason: 'it has crashed' }] },
    { name: 'team', url: '', servers: [{ name: 'a', state: 'ready' as const }] },
  ]
  expect(readTargets({ workspaces })).toEqual([
    { name: 'all', isServer: false, servers: ['a', 'b'], problem: undefined },
    { name: 'b', isServer: true, servers: ['b'], problem: 'down: it has crashed' },
    { name: 'team', isServer: false, servers: ['a'], problem: undefined },
  ])
})

test('a server without a workspace of its own is chosen within its workspaces', () => {
  const target = (name: string, servers: readonly string[], isServer = false) => ({
    ...{ name, servers, isServer, problem: undefined },
  })
  const known = [target('all', ['a', 'b']), target('b', ['b'], true), target('team', ['a'])]
  expect(readChoices(known).map(({ target: name, server, label }) => [name, server, label])).toEqual([
    ['all', undefined, 'all (2 servers)'],
    ['all', 'a', 'all › a'],
    ['b', undefined, 'b'],
    ['team', undefined, 'team (1 server)'],
  ])
})
