// `npm --prefix bench run commands`: what listing the tools of a running gateway costs from the shell, beside other clients.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { figure, spread, table } from './markdown.ts'
import { publish } from './page.ts'
import { type Facts, facts, factsLine, OURS_ALONE, save } from './results.ts'
import { startDragomanWithData } from './start-dragoman.ts'
import { type Summary, summarize } from './statistics.ts'

const ROUNDS = 15
const PROGRAM = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const TICK_MS = 10 // of /proc/self/stat
const BAR = { factor: 1.5, plusMs: 100 }

interface Timing {
  readonly wallMs: number
  readonly cpuMs: number
}

interface CommandResults extends Facts {
  readonly timings: Readonly<Record<string, readonly Timing[]>>
}

/** CPU of all children that have ended. Linux only. */
const childrenCpuMs = (): number => {
  const fields = readFileSync('/proc/self/stat', 'latin1')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS
}

const time = (args: readonly string[], env: NodeJS.ProcessEnv): Timing => {
  const cpuBefore = childrenCpuMs()
  const begun = performance.now()
  const { status, stderr } = spawnSync(process.execPath, [...args], { env, encoding: 'utf8' })
  const wallMs = performance.now() - begun
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${stderr}`)
  return { wallMs, cpuMs: childrenCpuMs() - cpuBefore }
}

const folder = mkdtempSync(join(tmpdir(), 'dragoman-bench-commands-'))
const known = facts()
try {
  execFileSync('npm', ['install', '--no-save', '--prefix', folder, 'mcporter', '@modelcontextprotocol/inspector'], {
    stdio: 'ignore',
  })
  const { url, data } = await startDragomanWithData({ mcpServers: { demo: { builtin: 'demo' } } })
  const config = join(folder, 'mcporter.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { gateway: { url } } }))
  const binOf = (name: string, bin: string): string => {
    const root = join(folder, 'node_modules', name)
    return join(root, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).bin[bin])
  }
  const commands: Readonly<Record<string, readonly string[]>> = {
    'node -e 0': ['-e', '0'],
    'dragoman tools': [PROGRAM, 'tools'],
    'mcporter list': [binOf('mcporter', 'mcporter'), '--config', config, 'list', 'gateway'],
    'inspector --cli': [
      binOf('@modelcontextprotocol/inspector', 'mcp-inspector'),
      ...['--cli', url, '--transport', 'http', '--method', 'tools/list'],
    ],
  }
  const env = { ...process.env, DRAGOMAN_DATA: data, HOME: folder }
  const timings: Record<string, Timing[]> = {}
  for (const [name, args] of Object.entries(commands)) {
    time(args, env) // the files are in the page cache from now on
    timings[name] = []
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, args] of Object.entries(commands)) timings[name]?.push(time(args, env))
  const results: CommandResults = { ...known, timings }
  const section = sectionOf(results)
  save('commands', results)
  publish({ 'Command line': section })
  console.log(section)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit() // the gateway ends with this process, and keeps it alive until then

function sectionOf(results: CommandResults): string {
  const of = (name: string, figureOf: (timing: Timing) => number): Summary =>
    summarize((results.timings[name] ?? []).map(figureOf))
  const wall = (name: string) => of(name, ({ wallMs }) => wallMs)
  const cpu = (name: string) => of(name, ({ cpuMs }) => cpuMs)
  const bar = (base: Summary): number => base.median * BAR.factor + BAR.plusMs
  const met = (ours: Summary, base: Summary): string => (ours.median <= bar(base) ? 'met' : 'not met')
  const ours = 'dragoman tools'
  const none = 'node -e 0'
  return [
    factsLine(results, OURS_ALONE),
    `Listing the demo server's tools of a running gateway from the shell: ${ROUNDS} runs of each program, turn by turn, installed in
a folder, without \`npx\`. CPU is user and system time, in steps of ${TICK_MS} ms. The bar is ${BAR.factor} × \`node -e 0\` plus ${BAR.plusMs} ms:
wall ${figure(bar(wall(none)))} ms (${met(wall(ours), wall(none))}), CPU ${figure(bar(cpu(none)))} ms (${met(cpu(ours), cpu(none))}).`,
    table(
      ['program', 'wall ms', 'CPU ms'],
      Object.keys(results.timings).map(name => [`\`${name}\``, spread(wall(name)), spread(cpu(name))]),
    ),
  ].join('\n\n')
}
