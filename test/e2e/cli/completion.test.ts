import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestDaemon } from '../../support/cli.ts'

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const SLOW = { timeout: 60_000 } // each word starts the program a few times

let daemon: Awaited<ReturnType<typeof startTestDaemon>>
let folder: string
beforeAll(async () => {
  daemon = await startTestDaemon({ mcpServers: { demo: { builtin: 'demo' }, other: { builtin: 'demo' } } })
  folder = mkdtempSync(join(tmpdir(), 'dragoman-completion-'))
  mkdirSync(join(folder, 'here'))
  writeFileSync(join(folder, 'here', 'page.json'), '')
  writeFileSync(join(folder, 'dragoman'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`)
  chmodSync(join(folder, 'dragoman'), 0o755)
})
afterAll(async () => {
  await daemon.close()
  rmSync(folder, { recursive: true })
})

/** Runs a script of a shell, and returns the lines it prints. The daemon runs in this process, so nothing may block it. */
const runShell = async (shell: string, args: readonly string[], data = daemon.data): Promise<string[]> => {
  const env = {
    ...process.env,
    PATH: `${folder}:${process.env.PATH}`,
    DRAGOMAN_DATA: data,
    HOME: folder,
    NO_COLOR: '1',
  }
  const { stdout, stderr } = await promisify(execFile)(shell, args, { env, cwd: join(folder, 'here') })
  expect(stderr).toBe('')
  return stdout.split('\n').filter(line => line !== '')
}

/** What each shell offers for the last word of a line; the others are complete. */
const SHELLS: Readonly<Record<string, (words: readonly string[], data?: string) => Promise<string[]>>> = {
  bash: (words, data) => {
    const list = words.map(word => `'${word}'`).join(' ')
    const script = `eval "$(dragoman completion bash)"; COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _dragoman; printf '%s\\n' "\${COMPREPLY[@]}"`
    return runShell('bash', ['--norc', '-c', script], data)
  },
  zsh: async (words, data) => {
    // Outside the line editor, the two functions it offers words with print them.
    const fakes = `compdef() {}; compadd() { local at=\${@[(i)--]}; print -l -- "\${@[at+1,-1]}" }; _files() { print -l -- * }`
    const list = words.map(word => `'${word}'`).join(' ')
    const script = `${fakes}; eval "$(dragoman completion zsh)"; words=(${list}); CURRENT=${words.length}; _dragoman; true`
    const last = words.at(-1) ?? ''
    return (await runShell('zsh', ['-f', '-c', script], data)).filter(word => word.startsWith(last))
  },
  fish: async (words, data) => {
    const script = `dragoman completion fish | source; complete -C '${words.join(' ')}'`
    return (await runShell('fish', ['--no-config', '-c', script], data)).map(line => line.split('\t')[0] ?? '')
  },
}

const isInstalled = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0

describe.each(Object.keys(SHELLS).filter(isInstalled))('%s completes', shell => {
  const complete = async (...words: string[]) => (await SHELLS[shell]?.(['dragoman', ...words]))?.sort()

  it.each<[string, string[], string[]]>([
    ['commands', ['res'], ['resources', 'restart']],
    ['actions', ['memory', 'fo'], ['forget']],
    ['flags', ['call', '--ro'], ['--root']],
    ['clients', ['link', 'cl'], ['claude-code', 'claude-desktop', 'cline']],
    ['shells', ['completion', 'b'], ['bash']],
    ['servers', ['tools', 'o'], ['other']],
    ['tools', ['call', 'demo/example-'], ['demo/example-echo', 'demo/example-ping']],
    ['arguments', ['call', 'demo/test_x_mcp_header', 'l'], ['level=']],
    ['prompts', ['prompt', 'other/test_prompt_with_a'], ['other/test_prompt_with_arguments']],
    ['files', ['check', 'pa'], ['page.json']],
  ])('%s', SLOW, async (_, words, expected) => {
    expect(await complete(...words)).toEqual(expected)
  })

  it('nothing of servers while no daemon runs, and starts none', SLOW, async () => {
    expect(await SHELLS[shell]?.(['dragoman', 'call', 'demo/example-'], join(folder, 'none'))).toEqual([])
  })
})
