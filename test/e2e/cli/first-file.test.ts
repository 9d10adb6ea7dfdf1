import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ConfigDocument, ConfigSaved } from '../../../src/admin/api/config.ts'
import { endPrograms, startProgram } from './program.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-first-'))
})
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true })
})

const start = async (args: readonly string[]) => {
  const env = { DRAGOMAN_DATA: folder, XDG_CONFIG_HOME: folder }
  const program = startProgram(['serve', '--port', '0', ...args], env, folder)
  const [, origin = ''] = await program.saw(/listening on (http:\S+)/)
  const announced = async () =>
    JSON.parse(await readFile(join(folder, 'daemon.json'), 'utf8')) as Record<string, string>
  const { token = '' } = await announced()
  const request = async <T>(method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    return (await response.json()) as T
  }
  return { program, announced, request, origin }
}
const EDITS = [{ kind: 'set', path: ['mcpServers', 'demo'], value: { builtin: 'demo' } }]

it('a gateway that was started without a file creates one, uses it and follows it', async () => {
  const { program, announced, request, origin } = await start([])
  const { file, suggestedFile = '', etag, edit } = await request<ConfigDocument>('GET', '/admin/config')
  expect([file, suggestedFile, edit.isAllowed]).toEqual([undefined, join(folder, 'dragoman', 'dragoman.json'), true])
  const saved = await request<ConfigSaved>('PUT', '/admin/config', { edits: EDITS }, { 'if-match': `"${etag}"` })
  expect(saved).toMatchObject({ outcome: 'applied', file: suggestedFile })
  expect(saved.plan?.servers).toContainEqual(expect.objectContaining({ name: 'demo', kind: 'added' }))
  expect(await readFile(suggestedFile, 'utf8')).toContain('"builtin": "demo"')
  expect((await request<ConfigDocument>('GET', '/admin/config')).file).toBe(suggestedFile)
  expect((await announced()).config).toBe(suggestedFile)
  await writeFile(suggestedFile, JSON.stringify({ mcpServers: { other: { builtin: 'demo' } } }))
  const names = async () =>
    (await request<{ servers: { name: string }[] }>('GET', '/admin/status')).servers.map(({ name }) => name)
  await expect.poll(names, { timeout: 10_000 }).toEqual(['other'])
  expect(origin).toMatch(/^http:/)
  program.signal('SIGTERM')
  expect(await program.ended).toBe(0)
})

it('a gateway that was told to use no file says so', async () => {
  const { program, request } = await start(['--demo'])
  const { edit } = await request<ConfigDocument>('GET', '/admin/config')
  expect(edit).toMatchObject({ isAllowed: false, reason: expect.stringContaining('dragoman serve --config FILE') })
  program.signal('SIGTERM')
  await program.ended
})
