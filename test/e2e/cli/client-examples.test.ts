import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startCli, startTestDaemon } from '../../support/cli.ts'
import { documentedOutputs, IS_WRITING, normalizeOutput, writeOutputs } from '../../support/documented-output.ts'
import { readShell } from '../../support/shell-line.ts'

const SLOW = { timeout: 10_000 } // on a busy machine

const ROOT = resolve(import.meta.dirname, '../../..')
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const COMMANDS = 'tools prompts resources describe search call read prompt complete watch ping'.split(' ')

let daemon: Awaited<ReturnType<typeof startTestDaemon>>
let folder: string
beforeAll(async () => {
  daemon = await startTestDaemon({ mcpServers: { demo: { builtin: 'demo' } } })
  folder = mkdtempSync(join(tmpdir(), 'dragoman-examples-'))
})
afterAll(async () => {
  await daemon.close()
  rmSync(folder, { recursive: true })
  if (IS_WRITING) writeOutputs(outputs)
})

const documented = documentedOutputs()
const outputs = new Map<string, string>()

/** Compares what an example printed with docs/cli-examples.md. */
const compare = (line: string, { stdout, stderr }: { readonly stdout: string; readonly stderr: string }): void => {
  const shown = line.includes(' > ') ? stderr : stdout + stderr
  const output = normalizeOutput(shown, {
    [daemon.origin]: 'https://example.com',
    [daemon.data]: '~/data',
    [process.cwd()]: '/home/ann/project',
    'demo unknown': 'demo 1.0.0',
    '"version":"unknown"': '"version":"1.0.0"',
  })
  outputs.set(line, output)
  if (!IS_WRITING) expect(output).toBe(documented.get(line))
}

/** The places of the examples, as they are here. */
const localize = (args: readonly string[]): string[] => {
  const at = args.indexOf('npx')
  const words = at < 0 ? args : [...args.slice(0, at), process.execPath, EVERYTHING]
  const isFile = words.includes('--config')
  const local = words.map(word =>
    word
      .replace('https://example.com/mcp', `${daemon.origin}/mcp`)
      .replace('https://example.com/sse', `${daemon.origin}/sse`)
      .replace('$TOKEN', 'secret'),
  )
  const end = local.indexOf('--')
  const data = isFile ? [] : ['--data', daemon.data]
  return end < 0 ? [...local, ...data] : [...local.slice(0, end), ...data, ...local.slice(end)]
}

/** Runs a line; one that watches is interrupted as soon as it does. */
const runLine = async (line: string) => {
  const { args, input } = readShell(line)
  if (args[0] !== 'watch') return runCli(localize(args), { input })
  const cli = startCli(localize(args))
  await expect.poll(cli.stderr, SLOW).toContain('watching ')
  cli.interrupt()
  const { code, ...output } = await cli.ended
  expect(code).toBe(130)
  return { code: 0, ...output }
}

describe.each(COMMANDS)('dragoman %s --help', command => {
  it('has examples that work', async () => {
    const { code, stdout } = await runCli([command, '--help'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(new RegExp(`^Usage: dragoman ${command} `))])
    const examples = [...stdout.matchAll(/^ {4}(dragoman .*?)(?: {3,}\S.*)$/gm)].map(([, line = '']) => line)
    expect(examples.length).toBeGreaterThan(1)
    for (const example of examples) {
      const result = await runLine(example)
      expect([example, result.code, result.stderr]).toEqual([example, 0, expect.anything()])
      compare(example, result)
    }
  })
})

it('the example of the README works without a gateway and without a file', async () => {
  const [line = ''] = /^dragoman call .*$/m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
  const { args } = readShell(line)
  const result = await runCli([...args, '--data', folder])
  expect([result.code, result.stderr, result.stdout]).toEqual([0, '', expect.stringMatching(/./)])
})

/** Without its comment, and without the program that reads its output. */
const commandIn = (line: string): string => line.replace(/ {2,}# .*$/, '').replace(/ \| jq .*$/, '')

describe('docs/cli.md', () => {
  const page = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8')
  const lines = [...page.matchAll(/^```sh\n(.*?)^```/gms)]
    .flatMap(([, block = '']) => block.split('\n'))
    .filter(line => COMMANDS.some(command => new RegExp(`^(echo .* \\| )?dragoman ${command}( |$)`).test(line)))

  it('has examples of every command', () => {
    expect(COMMANDS.filter(command => !lines.some(line => line.includes(`dragoman ${command}`)))).toEqual([])
  })

  it.each(lines)('%s', async line => {
    const result = await runLine(line)
    expect([result.code, result.stdout + result.stderr]).toEqual([0, expect.stringMatching(/./)])
    compare(commandIn(line), result)
  })
})
