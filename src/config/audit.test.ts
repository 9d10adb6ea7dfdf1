import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { auditFile } from './audit.ts'
import { loadConfig } from './load.ts'

const load = (value: object, env: Record<string, string> = {}) =>
  loadConfig({ value: { mcpServers: { demo: { builtin: 'demo' } }, ...value }, env })

test('it is off unless the file asks for it', async () => {
  expect((await load({})).audit).toBeUndefined()
  expect((await load({ audit: false })).audit).toBeUndefined()
  expect((await load({ audit: true })).audit).toEqual({
    to: 'file',
    maxBytes: 100 * 1024 * 1024,
    files: 10,
    arguments: false,
    results: false,
  })
})

test('a relative file counts from the folder of the configuration, and may hold variables', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-audit-config-'))
  const file = join(folder, 'mcp.json')
  await writeFile(file, '{"mcpServers":"default","audit":{"file":"logs/${NAME}.jsonl"}}')
  expect((await loadConfig({ file, env: { NAME: 'who' } })).audit?.file).toBe(join(folder, 'logs', 'who.jsonl'))
  await rm(folder, { recursive: true })
})

test('without a file it is in the data directory, and without that it has no place', async () => {
  const { audit } = await load({ audit: true })
  if (!audit) throw new Error('no audit')
  expect(auditFile(audit, '/data')).toBe(join('/data', 'audit.jsonl'))
  expect(() => auditFile(audit, undefined)).toThrow('"audit" needs a file: name one')
})

test.each([
  [{ audit: 'stdout' }, 'audit: expected true, false or an object'],
  [{ audit: { to: 'syslog' } }, 'audit.to: expected one of "file", "stdout"'],
  [{ audit: { to: 'stdout', file: 'x' } }, 'audit.file: has no effect, because "to" is "stdout"; remove one'],
  [{ audit: { maxBytes: 10 } }, 'audit.maxBytes: expected a whole number from 65536 up'],
  [{ audit: { files: 0 } }, 'audit.files: expected a whole number from 1 to 1000'],
  [{ audit: { argument: true } }, 'audit.argument: unknown key; did you mean "arguments"?'],
  [{ audit: { file: '${NONE}' } }, 'NONE'],
])('%j is rejected with what is wrong', async (value, message) => {
  await expect(load(value)).rejects.toThrow(message)
})
