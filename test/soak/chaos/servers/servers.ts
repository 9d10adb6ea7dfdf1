import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { start as startChannel } from '../../../support/servers/sdk-v1-sse.ts'
import { start as startModern } from '../../../support/servers/sdk-v2-server.ts'
import type { Ledger } from '../ledger.ts'
import { startJobServer } from './job-server.ts'
import { type OpenSession, startSessionServer } from './session-server.ts'
import { numberedTools } from './tools.ts'

/** The servers behind the gateways. */
export interface ChaosServers {
  readonly entries: Readonly<Record<string, object>> // of `mcpServers`
  readonly numbered: readonly string[] // the names of those with the tools `work` and `ask`
  /** The sessions at the legacy Streamable HTTP server that no one has ended. */
  openSessions(): OpenSession[]
  /** Tells the ledger what the processes have executed; they wrote it to a file. */
  readExecuted(): void
  close(): Promise<void>
}

/** The server whose only tool runs as a task. */
export const JOBS = 'jobs'

const STDIO = fileURLToPath(new URL('./stdio-server.mjs', import.meta.url))

/** Starts one server of each kind; `run` is in the environment of their processes. */
export const startServers = async (folder: string, ledger: Ledger, run: string): Promise<ChaosServers> => {
  const everything = numberedTools(number => ledger.executed(number))
  const modern = await startModern(0, everything)
  const legacy = await startSessionServer(everything)
  const channel = await startChannel(0, everything)
  const jobs = await startJobServer(number => ledger.executed(number))
  const executed = join(folder, 'executed')
  writeFileSync(executed, '')
  const numbered = {
    modern: { url: modern.url },
    legacy: { url: legacy.url },
    channel: { type: 'sse', url: channel.url },
    process: { command: process.execPath, args: [STDIO, executed], env: { CHAOS_RUN: run } },
  }
  return {
    entries: { ...numbered, [JOBS]: { url: jobs.url } },
    numbered: Object.keys(numbered),
    openSessions: legacy.openSessions,
    readExecuted: () => {
      for (const line of readFileSync(executed, 'utf8').split('\n')) if (line !== '') ledger.executed(Number(line))
    },
    close: async () => {
      for (const { close } of [modern, legacy, channel, jobs]) await close()
    },
  }
}
