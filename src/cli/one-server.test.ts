import { expect, it } from 'vitest'
import { readOneServer, splitAtDashes } from './one-server.ts'

const nameOf = (text: string): string | undefined => readOneServer(undefined, text.split(' '), [])?.name

it.each([
  ['npx -y @modelcontextprotocol/server-everything', 'everything'],
  ['npx -y mcp-server-fetch@1.2.3', 'fetch'],
  ['uvx mcp-server-git --repository .', 'git'],
  ['uv run github-mcp-server', 'github'],
  ['node /opt/tools/my-server.js', 'my'],
  ['docker run -i --rm ghcr.io/github/github-mcp-server', 'github'],
  ['/usr/local/bin/weather', 'weather'],
  ['node', 'node'],
])('names the server of the command %s: %s', (command, name) => {
  expect(nameOf(command)).toBe(name)
})

it.each([
  ['https://mcp.example.com/mcp', 'example'],
  ['https://example.co/x', 'example'],
  ['http://127.0.0.1:1/mcp', 'server'],
  ['http://localhost:1/mcp', 'localhost'],
])('names the server of the URL %s: %s', (url, name) => {
  expect(readOneServer(url, undefined, ['Authorization: Bearer a:b'])).toEqual({
    name,
    entry: { url, headers: { Authorization: 'Bearer a:b' } },
  })
})

it('takes everything after the first -- for the command', () => {
  expect(splitAtDashes(['--port', '0', '--', 'node', '--', 'x'])).toEqual({
    own: ['--port', '0'],
    command: ['node', '--', 'x'],
  })
  expect(splitAtDashes(['x'])).toEqual({ own: ['x'], command: undefined })
})
