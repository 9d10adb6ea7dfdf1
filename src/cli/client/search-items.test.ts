import { expect, it } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { searchItems } from './search-items.ts'

const tool = (server: string, name: string, description: string, args: Readonly<Record<string, string>> = {}) => ({
  server,
  name,
  definition: Json.of({
    name: `${server}__${name}`,
    description,
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(args).map(([key, about]) => [key, { description: about }])),
    },
  }),
})

const resource = (server: string, uri: string, name: string) => ({
  server,
  name: uri,
  definition: Json.of({ uri, name }),
})

const ITEMS = [
  tool('demo', 'test_image_content', 'Returns one image'),
  tool('demo', 'test_reconnection', 'Lets a client lose its stream and resume it'),
  tool('ev', 'get-tiny-image', 'Returns a tiny MCP logo.'),
  tool('ev', 'get-sum', 'Returns the sum of two numbers', { a: 'First number', b: 'Second number' }),
  tool('ev', 'get-env', 'Returns all environment variables'),
  tool('fs', 'read_file', 'Read the contents of a file as text'),
  tool('fs', 'write_file', 'Create a file. Read it with another tool'),
  tool('fs', 'list_directory', 'Lists files and folders', { sortBy: 'Order by name or size' }),
  tool('git', 'listPullRequests', 'All open ones of a repository'),
  resource('demo', 'test://static-text', 'A text that never changes'),
]

const search = (...words: string[]) => {
  const { found, matched } = searchItems(ITEMS, words)
  return [matched, ...found.map(({ server, name }) => `${server}/${name}`)]
}

it.each<[string, string[], (string | number)[]]>([
  ['a word in names before one in descriptions', ['sum'], [1, 'ev/get-sum']],
  ['another number of the word', ['images'], [1, 'demo/test_image_content', 'ev/get-tiny-image']],
  ['another form of the word', ['reading', 'files'], [2, 'fs/read_file', 'fs/write_file']],
  ['a word of a name in camel case', ['pull', 'request'], [2, 'git/listPullRequests']],
  ['an argument', ['sort'], [1, 'fs/list_directory']],
  ['the beginning of a word', ['env'], [1, 'ev/get-env']],
  ['the name of a server', ['fs', 'list'], [2, 'fs/list_directory']],
  ['a typing error', ['enviroment'], [1, 'ev/get-env']],
  ['a URI', ['static-text'], [1, 'demo/test://static-text']],
  ['most of the words, where no item has all', ['add', 'two', 'numbers'], [2, 'ev/get-sum']],
  ['nothing', ['zebra'], [0]],
])('finds %s', (_, words, expected) => {
  expect(search(...words)).toEqual(expected)
})

it('prefers a name that is all of the words', () => {
  expect(search('read', 'file')[1]).toBe('fs/read_file')
})
