import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../support/cli.ts'
import { pseudoTerminalProblem, startInTerminal } from '../../support/pseudo-terminal.ts'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const SERVER = fileURLToPath(new URL('../../support/servers/file-tools.mjs', import.meta.url))
const problem = pseudoTerminalProblem()
if (problem) console.warn(`skipped: the tool picker in a pseudo-terminal (${problem})`)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dragoman-pick-'))
  const tools = ['add', 'list', 'remove'].map(name => ({ name, inputSchema: { type: 'object' } }))
  writeFileSync(join(folder, 'tools.json'), JSON.stringify({ tools }))
})
afterAll(() => rmSync(folder, { recursive: true }))

const writeConfig = (name: string, rest: string): string => {
  const file = join(folder, name)
  const entry = { command: process.execPath, args: [SERVER, join(folder, 'tools.json')] }
  writeFileSync(file, `{\n  // my servers\n  "mcpServers": { "notes": ${JSON.stringify(entry)} }${rest}\n}\n`)
  return file
}
const pick = (file: string, ...args: string[]) =>
  startInTerminal([process.execPath, MAIN, 'tools', '--pick', '--config', file, '--data', folder, ...args], {
    env: { NO_COLOR: '1' },
  })

describe.skipIf(problem !== undefined)('dragoman tools --pick, in a terminal', () => {
  it('writes the chosen tools into the workspace, and keeps comments', async () => {
    const file = writeConfig(
      'own.json',
      `,\n  "workspaces": {\n    // for everyday work\n    "default": { "servers": "*", "policy": { "allow": { "tools": ["notes/a*"] } } } // end\n  }`,
    )
    const terminal = pick(file)
    await terminal.shows('default: 1 of 3 tools')
    await terminal.shows('[x] notes/add')
    terminal.type('\u001b[B ') // the second one, too
    await terminal.shows('default: 2 of 3 tools')
    terminal.type('\r')
    expect(await terminal.ended).toBe(0)
    expect(terminal.screen()).toContain('Workspace "default" shows 2 tools in')
    const text = readFileSync(file, 'utf8')
    expect(text).toContain('"tools": ["notes/add", "notes/list"]')
    for (const comment of ['// my servers', '// for everyday work', '// end']) expect(text).toContain(comment)
  })

  it('writes out the workspaces of a file that names none, so that no URL is lost', async () => {
    const file = writeConfig('derived.json', '')
    const terminal = pick(file)
    await terminal.shows('default: 3 of 3 tools')
    terminal.type('/remo\rn')
    await terminal.shows('default: 2 of 3 tools')
    terminal.type('\r')
    expect(await terminal.ended).toBe(0)
    const { workspaces } = JSON.parse(readFileSync(file, 'utf8').replace('// my servers', '')) as { workspaces: object }
    expect(workspaces).toEqual({
      default: { servers: ['notes'], policy: { allow: { tools: ['notes/add', 'notes/list'] } } },
      notes: { servers: ['notes'] },
    })
  })

  it('changes nothing if the user leaves', async () => {
    const file = writeConfig('left.json', '')
    const before = readFileSync(file, 'utf8')
    const terminal = pick(file)
    await terminal.shows('3 of 3 tools')
    terminal.type('nq')
    expect(await terminal.ended).toBe(1)
    expect(terminal.screen()).toContain('Nothing was changed.')
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  it('says what to change where the workspace has a policy of another name', async () => {
    const rest = `,\n  "policies": { "few": {} }, "workspaces": { "default": { "servers": "*", "policy": "few" } }`
    const terminal = pick(writeConfig('named.json', rest))
    expect(await terminal.ended).toBe(2)
    expect(terminal.screen().replace(/\s+/g, ' ')).toContain('uses the policy "few" by its name')
  })
})

it('needs a terminal', async () => {
  expect(await runCli(['tools', '--pick'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('needs a terminal'),
  })
})
