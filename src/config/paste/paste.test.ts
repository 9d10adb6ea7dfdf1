import { describe, expect, it } from 'vitest'
import { readPaste } from './paste.ts'

const read = (text: string, taken: readonly string[] = []) =>
  readPaste(text, { taken: name => taken.includes(name), port: 8765 })
const only = (text: string) => {
  const { kind, servers } = read(text)
  expect(servers).toHaveLength(1)
  const { name, entry } = servers[0] ?? {}
  return { kind, name, entry }
}
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')

const EVERYTHING = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] }

describe('a URL', () => {
  it.each([
    ['https://mcp.example.com/mcp', { kind: 'url', name: 'example', entry: { url: 'https://mcp.example.com/mcp' } }],
    ['  http://127.0.0.1:9/sse \n', { name: 'server', entry: { url: 'http://127.0.0.1:9/sse', type: 'sse' } }],
  ])('%s', (text, expected) => {
    expect(only(text)).toMatchObject(expected)
  })

  it('of this gateway is refused', () => {
    expect(read('http://localhost:8765/mcp').reason).toMatch(/leads back to this gateway/)
  })
})

describe('a command line', () => {
  it.each([
    ['npx -y @modelcontextprotocol/server-everything', { kind: 'command', name: 'everything', entry: EVERYTHING }],
    ['$ npx -y \\\n  @modelcontextprotocol/server-everything', { name: 'everything', entry: EVERYTHING }],
    [
      'API_KEY="a b" uvx mcp-server-time --tz=\'Europe/Vienna\'',
      {
        name: 'time',
        entry: { command: 'uvx', args: ['mcp-server-time', '--tz=Europe/Vienna'], env: { API_KEY: 'a b' } },
      },
    ],
    [
      'C:\\Tools\\my.exe --root "C:\\My Files"',
      { name: 'my', entry: { command: 'C:\\Tools\\my.exe', args: ['--root', 'C:\\My Files'] } },
    ],
    [
      'claude mcp add --transport http sentry https://mcp.sentry.dev/mcp --header "Authorization: Bearer x"',
      { name: 'sentry', entry: { url: 'https://mcp.sentry.dev/mcp', headers: { Authorization: 'Bearer x' } } },
    ],
    [
      'claude mcp add notes -e KEY=1 -s user -- npx -y notes-mcp --verbose',
      { name: 'notes', entry: { command: 'npx', args: ['-y', 'notes-mcp', '--verbose'], env: { KEY: '1' } } },
    ],
    [
      'codex mcp add docs --url https://docs.example.com/mcp --bearer-token-env-var DOCS',
      { name: 'docs', entry: { url: 'https://docs.example.com/mcp', headers: { Authorization: 'Bearer ${DOCS}' } } },
    ],
    ['gemini mcp add files node files.js -y', { name: 'files', entry: { command: 'node', args: ['files.js', '-y'] } }],
    [
      'dragoman add x https://example.com/mcp?a=1&b=2',
      { name: 'x', entry: { url: 'https://example.com/mcp?a=1&b=2' } },
    ],
    [
      `code --add-mcp '{"name":"time","command":"uvx","args":["mcp-server-time"]}'`,
      { name: 'time', entry: { command: 'uvx', args: ['mcp-server-time'] } },
    ],
    [
      `claude mcp add-json wx '{"type":"http","url":"https://wx.example.com/mcp"}'`,
      { name: 'wx', entry: { type: 'http', url: 'https://wx.example.com/mcp' } },
    ],
  ])('%s', (text, expected) => {
    expect(only(text)).toMatchObject(expected)
  })

  it.each([
    ['cd /srv && npx x', /No shell reads the command/],
    ['npx x | tee log', /No shell reads/],
    ['npx "unclosed', /neither a URL, a command/],
    ['This server is great.', /neither a URL, a command/],
    ['claude mcp add', /names no server/],
    ['claude mcp add only-a-name', /no URL and no program/],
  ])('is refused with a reason: %s', (text, reason) => {
    expect(read(text)).toMatchObject({ kind: 'nothing', servers: [], reason: expect.stringMatching(reason) })
  })
})

describe('the configuration of a client', () => {
  it.each([
    ['mcpServers', `{"mcpServers": {"a": ${JSON.stringify(EVERYTHING)},}} // comment`],
    ['VS Code', `{"servers": {"a": ${JSON.stringify(EVERYTHING)}}}`],
    ['settings of VS Code', `{"mcp": {"servers": {"a": ${JSON.stringify(EVERYTHING)}}}}`],
    ['a member without braces', `"a": ${JSON.stringify(EVERYTHING)},`],
    ['servers by name', `{"a": ${JSON.stringify(EVERYTHING)}}`],
    ['Markdown', `\`\`\`json\n{"a": ${JSON.stringify(EVERYTHING)}}\n\`\`\``],
    ['OpenCode', `{"mcp": {"a": {"type": "local", "command": ${JSON.stringify(['npx', ...EVERYTHING.args])}}}}`],
    ['Zed', `{"context_servers": {"a": {"command": {"path": "npx", "args": ${JSON.stringify(EVERYTHING.args)}}}}}`],
    ['Codex', '[mcp_servers.a]\ncommand = "npx"\nargs = ["-y", "@modelcontextprotocol/server-everything"]'],
    ['Cursor link', `cursor://anysphere.cursor-deeplink/mcp/install?name=a&config=${base64(EVERYTHING)}`],
    ['VS Code link', `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name: 'a', ...EVERYTHING }))}`],
  ])('%s', (_, text) => {
    expect(only(text)).toMatchObject({ name: 'a', entry: EVERYTHING })
  })

  it('of a single entry gets a name from its command', () => {
    expect(only(JSON.stringify(EVERYTHING))).toMatchObject({ name: 'everything', entry: EVERYTHING })
  })

  it('with several servers gives all of them, with names that are free', () => {
    const text = JSON.stringify({ mcpServers: { a: EVERYTHING, b: { url: 'https://b.example/mcp' } } })
    expect(read(text, ['a', 'a-2']).servers.map(({ name }) => name)).toEqual(['a-3', 'b'])
  })

  it('says what is lost, and where a placeholder is', () => {
    const entry = { ...EVERYTHING, autoApprove: ['x'], color: 'red', env: { API_KEY: 'YOUR_API_KEY' } }
    expect(read(JSON.stringify({ mcpServers: { a: entry } })).servers[0]?.notes).toEqual([
      expect.stringContaining('"autoApprove" is ignored'),
      'not taken over: color',
      expect.stringContaining('env.API_KEY holds a placeholder; write ${API_KEY}'),
    ])
  })

  it.each([
    ['{"mcpServers": {"a": }}', /This is not JSON: line 1, column \d+: expected a value/],
    ['{"theme": "dark"}', /No server is described here/],
    ['[1]', /Expected an object/],
    ['[mcp_servers.a]\ncommand = ', /not TOML: line 2/],
    ['{"mcpServers": {"g": {"command": "dragoman", "args": ["stdio"]}}}', /leads back to this gateway/],
  ])('is refused with a reason: %s', (text, reason) => {
    expect(read(text)).toMatchObject({ kind: 'nothing', reason: expect.stringMatching(reason) })
  })
})
