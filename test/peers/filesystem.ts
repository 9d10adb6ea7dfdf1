import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Answerer, obliging, type TestClient, textOf } from '../support/client.ts'
import type { Cell, CellResult } from './cell.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { type CheckBody, runChecks } from './run-checks.ts'
import { connectSdk, revisionOf, SDK_CLIENTS, type SdkClient } from './sdk-clients.ts'
import { lazyStation } from './station.ts'

const PROGRAM = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'))
const { version } = createRequire(PROGRAM)('../package.json') as { version: string }

const TEXT = 'Water the plants'
const POLL_MS = 100
const POLLS = 80
const ANSWER_MS = 300

/** One server, and two of them: with two, the gateway cannot tell a server's question from the only call that runs. */
const WORKSPACES = {
  alone: { servers: ['filesystem'] },
  beside: { servers: ['filesystem', 'demo'], names: 'plain' },
} as const

const ROUTES: Record<keyof typeof WORKSPACES, string> = { alone: 'one server', beside: 'two servers' }
const CHECKS = ['connect', 'list-tools', 'roots', 'read-file', 'close'] as const
const SESSIONS = ['first', 'second'] as const

/** The server learns its only directory from the client's roots; each client opens two sessions, one after the other. */
export const filesystemCells = (): { readonly cells: Cell[]; stop(): Promise<void> } => {
  const station = lazyStation(async () => {
    const gateway = await startGateway(() => ({
      mcpServers: { filesystem: { command: process.execPath, args: [PROGRAM] }, demo: { builtin: 'demo' } },
      workspaces: WORKSPACES,
    }))
    return { value: gateway, stop: gateway.stop }
  })
  const cells = (['alone', 'beside'] as const).flatMap(workspace =>
    SDK_CLIENTS.map(
      client =>
        ({
          side: 'server',
          peer: 'server-filesystem',
          version,
          route: `stdio, ${ROUTES[workspace]}, TypeScript ${client} client`,
          checks: SESSIONS.flatMap(session => CHECKS.map(check => `${session}-${check}`)),
          isQuick: true,
          run: async () => runSessions(client, await station.get(), workspace),
        }) satisfies Cell,
    ),
  )
  return { cells, stop: station.stop }
}

const runSessions = async (
  kind: SdkClient,
  gateway: Gateway,
  workspace: keyof typeof WORKSPACES,
): Promise<CellResult> => {
  const root = join(gateway.folder, `${kind} ${workspace}`)
  mkdirSync(root, { recursive: true })
  writeFileSync(join(root, 'note.txt'), TEXT)
  let revision = 'none'
  const checks: Record<string, CheckBody> = {}
  for (const session of SESSIONS) {
    let client: TestClient
    const bodies: Record<(typeof CHECKS)[number], CheckBody> = {
      connect: async () => {
        client = await connectSdk(kind, { url: gateway.url(workspace), answer: answerRoots(root) })
        revision = revisionOf(client)
      },
      'list-tools': async () => expectIncludes((await client.toolNames()).join(' '), 'read_text_file'),
      roots: async () => expectIncludes(await allowedDirectories(client, root), root),
      'read-file': async () =>
        expectIncludes(textOf(await client.call('read_text_file', { path: join(root, 'note.txt') })), TEXT),
      close: () => client.close(),
    }
    for (const check of CHECKS) checks[`${session}-${check}`] = bodies[check]
  }
  const outcomes = await runChecks(checks)
  return { kind: 'ran', revision, outcomes }
}

/** Takes longer than a call: the server's question outlives the call that started its process. */
const answerRoots =
  (root: string): Answerer =>
  async asked => {
    if (asked.method !== 'roots/list') return obliging(asked)
    await new Promise(resolve => setTimeout(resolve, ANSWER_MS))
    return { roots: [{ uri: pathToFileURL(root).href, name: 'Project' }] }
  }

/** The server asks for the roots when it starts, and does not wait for the answer before it answers calls. */
const allowedDirectories = async (client: TestClient, root: string): Promise<string> => {
  let text = ''
  for (let poll = 0; poll < POLLS && !text.includes(root); poll += 1) {
    if (poll > 0) await new Promise(resolve => setTimeout(resolve, POLL_MS))
    text = textOf(await client.call('list_allowed_directories', {}))
  }
  return text
}

const expectIncludes = (text: string, wanted: string): void => {
  if (!text.includes(wanted)) throw new Error(`expected "${wanted}" in "${text.slice(0, 300)}"`)
}
