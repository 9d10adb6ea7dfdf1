import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { start as startChannel } from '../../../support/servers/sdk-v1-sse.ts'
import { start as startModern } from '../../../support/servers/sdk-v2-server.ts'
import type { Ledger } from '../ledger.ts'
import { type OpenSession, startSessionServer } from './session-server.ts'
import { numberedTools } from './tools.ts'

/** The servers behind the gateways. */
export interface ChaosServers {
  readonly entries: Readonly<Record<string, object>> // of `mcpServers`
  /** The sessions at the legacy Streamable HTTP server that no one has ended. */
  openSessions(): OpenSession[]
  /** Tells the ledger what the processes have executed; they wrote it to a file. */
  readExecuted(): void
  close(): Promise<void>
}

const STDIO = fileURLToPath(new URL('./stdio-server.mjs', import.meta.url))

/** Starts one server of each kind; `run` is in the environment of their processes. */
export const startServers = async (folder: string, ledger: Ledger, run: string): Promise<ChaosServers> => {
  const everything = numberedTools(number => ledger.executed(number))
  const modern = await startModern(0, everything)
  const legacy = await startSessionServer(everything)
  const channel = await startChannel(0, everything)
  const executed = join(folder, 'executed')
  writeFileSync(executed, '')
  return {
    entries: {
      modern: { url: modern.url },
      legacy: { url: legacy.url },
      channel: { type: 'sse', url: channel.url },
      process: { command: process.execPath, args: [STDIO, executed], env: { CHAOS_RUN: run } },
    },
    openSessions: legacy.openSessions,
    readExecuted: () => {
      for (const line of readFileSync(executed, 'utf8').split('\n')) if (line !== '') ledger.executed(Number(line))
    },
    close: async () => {
      for (const { close } of [modern, legacy, channel]) await close()
    },
  }
}
