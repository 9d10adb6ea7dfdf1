import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { livingWith } from '../support/run-processes.ts'
import { install } from './install.ts'
import { runCommand } from './process.ts'
import { pythonProgram } from './recipes.ts'

const RELEASE = '2026.8.31'
const LIST_WAIT_MS = 120_000 // a busy machine needs more than the 12 s of the default
const NETWORK = ['*_PROXY', '*_proxy', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_*', 'PIP_*', 'UV_*', 'npm_config_*']

/** Servers as their documentation starts them, with the number of tools that each lists to a client without capabilities. */
export const PACKAGE_SERVERS: Readonly<
  Record<string, { readonly command: (folder: string) => readonly string[]; readonly tools: number }>
> = {
  filesystem: {
    command: folder => ['npx', '-y', `@modelcontextprotocol/server-filesystem@${RELEASE}`, folder],
    tools: 14,
  },
  memory: { command: () => ['npx', '-y', `@modelcontextprotocol/server-memory@${RELEASE}`], tools: 9 },
  thinking: { command: () => ['npx', '-y', `@modelcontextprotocol/server-sequential-thinking@${RELEASE}`], tools: 1 },
  everything: { command: () => ['npx', '-y', `@modelcontextprotocol/server-everything@${RELEASE}`], tools: 13 },
  time: { command: () => ['uvx', 'mcp-server-time@2026.10.19'], tools: 2 },
  fetch: { command: () => ['uvx', 'mcp-server-fetch@2026.10.24'], tools: 1 },
  git: { command: folder => ['uvx', 'mcp-server-git@2026.10.19', '--repository', folder], tools: 12 },
}

/** What `npx` and `uvx` need, or why they cannot be used; `PATH` has both. */
export const findLaunchers = async (): Promise<{ readonly path: string } | { readonly reason: string }> => {
  const registry = await runCommand({ command: 'npm', args: ['view', 'supergateway', 'version'] }, 30_000)
  if (registry.code !== 0) return { reason: 'the registry of npm cannot be reached' }
  const installed = await install(pythonProgram('uv', '').recipe)
  if (installed.kind === 'skipped') return installed
  return { path: `${join(installed.folder, 'bin')}:${process.env.PATH}` }
}

/** A configuration of these servers, whose processes are known by a variable. */
export const packageConfig = (folder: string, path: string, idleMs: number) => {
  const run = randomUUID()
  const mark = (name: string): string => `PEER_RUN=${run}-${name}`
  const mcpServers = Object.fromEntries(
    Object.entries(PACKAGE_SERVERS).map(([name, { command }]) => {
      const [program = '', ...args] = command(folder)
      const env = { PATH: path, PEER_RUN: `${run}-${name}` }
      return [name, { command: program, args, env, limits: { idleMs } }]
    }),
  )
  return {
    config: { passEnv: NETWORK, mcpServers, limits: { listWaitMs: LIST_WAIT_MS } },
    /** The trees of processes of each server that has any, and the memory of all. */
    running: () => {
      const trees: Record<string, number> = {}
      let rssMb = 0
      for (const name of Object.keys(PACKAGE_SERVERS)) {
        const pids = livingWith(mark(name))
        const roots = pids.filter(pid => !pids.includes(parentOf(pid)))
        if (roots.length > 0) trees[name] = roots.length
        for (const pid of pids) rssMb += rssOf(pid)
      }
      return { trees, rssMb: Math.round(rssMb) }
    },
  }
}

const statusOf = (pid: number, field: string): number => {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0 // it has ended
  }
}
const parentOf = (pid: number): number => statusOf(pid, 'PPid')
const rssOf = (pid: number): number => statusOf(pid, 'VmRSS') / 1000
