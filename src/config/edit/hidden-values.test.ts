import { describe, expect, it } from 'vitest'
import { parseJsonText } from '../json-text.ts'
import { hideValues, restoreText, restoreValue } from './hidden-values.ts'

const KEY = Buffer.from('key')
const hide = (text: string) => hideValues(text, KEY)
const hideEntry = (entry: object): Record<string, unknown> => {
  const { value } = parseJsonText(hide(JSON.stringify({ mcpServers: { a: entry } })).text)
  return (value as { mcpServers: { a: Record<string, unknown> } }).mcpServers.a
}
const ID = '\\$\\{hidden:[0-9a-f]{10}\\}'
const like = (text: string) => expect.stringMatching(new RegExp(`^${text.replaceAll('ID', ID)}$`))

describe('hideValues', () => {
  it.each([
    [
      { headers: { Authorization: 'Bearer abc', 'X-Team': 'blue' } },
      { Authorization: like('Bearer ID'), 'X-Team': like('ID') },
    ],
    [
      { headers: { Authorization: 'Bearer ${TOKEN}', 'User-Agent': 'mine' } },
      { Authorization: 'Bearer ${TOKEN}', 'User-Agent': 'mine' },
    ],
    [
      { headers: { 'X-Key': '${A}-suffix', 'X-For': '${caller.name}' } },
      { 'X-Key': like('\\$\\{A\\}ID'), 'X-For': '${caller.name}' },
    ],
    [{ headers: { 'X-Key': '${A:-fallback}' } }, { 'X-Key': like('\\$\\{A:-ID\\}') }],
  ])('in headers: %j', (entry, headers) => {
    expect(hideEntry(entry)).toEqual({ headers })
  })

  it.each([
    [
      { env: { API_KEY: 'x', LOG_LEVEL: 'debug', HOME_DIR: '/home/ann/some-long-folder-name-2024' } },
      { env: { API_KEY: like('ID'), LOG_LEVEL: 'debug', HOME_DIR: '/home/ann/some-long-folder-name-2024' } },
    ],
    [
      { env: { DB_PASS: 'x', DB_PWD: 'x', SENTRY_DSN: 'x', PASSENGERS: 'many' } },
      { env: { DB_PASS: like('ID'), DB_PWD: like('ID'), SENTRY_DSN: like('ID'), PASSENGERS: 'many' } },
    ],
    [
      { env: { SETTING: 'ghp_abcdefghijklmnop', DB: 'postgres://u:pw@db/x' } },
      { env: { SETTING: like('ID'), DB: like('postgres://u:ID@db/x') } },
    ],
    [
      { args: ['-y', 'x', '--token', 'abc', '--api-key=def', '-e', 'MY_TOKEN=ghi', '--verbose'] },
      { args: ['-y', 'x', '--token', like('ID'), like('--api-key=ID'), '-e', like('MY_TOKEN=ID'), '--verbose'] },
    ],
    [
      { args: ['@modelcontextprotocol/server-everything@2025.12.18', '--header', 'Authorization: Bearer x'] },
      { args: ['@modelcontextprotocol/server-everything@2025.12.18', '--header', like('Authorization: Bearer ID')] },
    ],
    [{ url: 'https://x.example/mcp?api_key=abc&page=2' }, { url: like('https://x.example/mcp\\?api_key=ID&page=2') }],
    [{ url: 'https://x.example/s/a8Fk29dkLq83hfkS03hf/mcp' }, { url: like('https://x.example/s/ID/mcp') }],
    [
      { url: 'u', oauth: { clientId: 'Iv1', clientSecret: 's' } },
      { url: 'u', oauth: { clientId: 'Iv1', clientSecret: like('ID') } },
    ],
    [{ memory: { extraction: { key: 'k9' } } }, { memory: { extraction: { key: like('ID') } } }],
    [
      { credentials: { ann: { headers: { Authorization: 'Basic dTpw' } } } },
      { credentials: { ann: { headers: { Authorization: like('Basic ID') } } } },
    ],
  ])('in other places: %j', (entry, shown) => {
    expect(hideEntry(entry)).toEqual(shown)
  })

  it('in comments, and in text that is not JSON', () => {
    const { text } = hide(
      '{\n  // "Authorization": "Bearer abc"\n  // old: ghp_abcdefghijklmnop\n  "env": { "TOKEN": "x9y" },,\n',
    )
    expect(text).not.toMatch(/abc|ghp_|x9y/)
    expect(text.split('\n')).toHaveLength(5)
  })
})

describe('what is restored', () => {
  const SOURCE =
    '\ufeff{\r\n  // "K": "ghp_abcdefghijklmnop"\r\n  "mcpServers": { "a": { "headers": { "X": "s\\u0065cret\\/\\"" } } },\r\n}'

  it('is the text byte for byte', () => {
    const hidden = hide(SOURCE)
    expect(hidden.text).not.toBe(SOURCE)
    expect(restoreText(hidden.text, hidden)).toEqual({ value: SOURCE, problems: [] })
  })

  it('knows hidden values that were moved, and those within a longer text', () => {
    const hidden = hide('{"env": {"TOKEN": "a\\"b"}}')
    const id = [...hidden.secrets.keys()][0] ?? ''
    expect(restoreText(`{"x": ["<\${hidden:${id}}>"]}`, hidden).value).toBe('{"x": ["<a\\"b>"]}')
    expect(restoreValue({ x: [`\${hidden:${id}}`] }, hidden, []).value).toEqual({ x: ['a"b'] })
  })

  it('reports hidden values that are not known, with their place', () => {
    const text = '{\n  "x": "${hidden:0123456789}"\n}'
    expect(restoreText(text, hide('{}')).problems).toMatchObject([
      { line: 2, column: 8, message: expect.stringContaining('write it again') },
    ])
    expect(restoreValue(['${hidden:zz}'], hide('{}'), ['a']).problems).toMatchObject([{ path: ['a', 0] }])
  })
})
