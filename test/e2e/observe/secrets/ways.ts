import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startGateway } from '../../../../src/app/gateway.ts'
import { findDaemon } from '../../../../src/config/daemon-file.ts'
import { loadConfig } from '../../../../src/config/load.ts'
import { createTestLog } from '../../../support/log.ts'
import { pseudoTerminalProblem, startInTerminal } from '../../../support/pseudo-terminal.ts'
import { startServe } from '../../cli/program.ts'

/** A gateway that logs at the level `debug`. */
export interface WatchedGateway {
  readonly origin: string
  readonly owner: string // the token of the user who runs it
  /** Ends it, and returns everything that it has logged and printed. */
  stop(): Promise<string>
}

interface WayOptions {
  readonly config: object
  readonly data: string
  readonly env: Readonly<Record<string, string>>
}

export type StartWay = (options: WayOptions) => Promise<WatchedGateway>

const MAIN = fileURLToPath(new URL('../../../../dist/main.js', import.meta.url))

/** The lines of the log as the code writes them, before what looks like a credential is removed from them. */
const inProcess: StartWay = async ({ config, data, env }) => {
  const { log, lines } = createTestLog({ isDebug: true })
  const load = async () => loadConfig({ file: await writeConfig(config, data), env, flags: { port: 0 } })
  const gateway = await startGateway(await load(), { log, data, version: '1', loadNext: load })
  const stop = async (): Promise<string> => {
    await gateway.close()
    return JSON.stringify(lines, (_, value) =>
      value instanceof Error ? [value.message, value.stack, value.cause, { ...value }] : value,
    )
  }
  return { origin: gateway.origin, owner: gateway.localSecret, stop }
}

const writeConfig = async (config: object, data: string): Promise<string> => {
  const file = join(data, 'mcp.json')
  await writeFile(file, JSON.stringify(config))
  return file
}

const argumentsOf = async ({ config, data }: WayOptions): Promise<string[]> => {
  const file = await writeConfig(config, data)
  return ['--config', file, '--data', data, '--log-level', 'debug']
}

/** Lines of JSON. */
const asProgram: StartWay = async options => {
  const program = await startServe(await argumentsOf(options), options.env)
  const { token = '' } = (await findDaemon(options.data)) ?? {}
  const stop = async (): Promise<string> => {
    program.signal('SIGTERM')
    await program.ended
    return program.stdout() + program.stderr()
  }
  return { origin: program.origin, owner: token, stop }
}

/** Coloured text. The link to the console that only a terminal shows is left out: it signs in the person who sees it. */
const inTerminal: StartWay = async options => {
  const line = [process.execPath, MAIN, 'serve', '--port', '0', ...(await argumentsOf(options))]
  const terminal = startInTerminal(line, { columns: 200, env: options.env })
  await terminal.shows('Console')
  const { origin = '', token = '', pid } = (await findDaemon(options.data)) ?? {}
  const stop = async (): Promise<string> => {
    if (pid !== undefined) process.kill(pid, 'SIGTERM')
    await terminal.ended
    return terminal.raw()
  }
  return { origin, owner: token, stop }
}

/** How the gateway is run, and which log it has then. */
export const WAYS: Readonly<Record<string, { readonly start: StartWay; readonly problem?: () => string | undefined }>> =
  {
    'in this process': { start: inProcess },
    'as a program, with lines of JSON': { start: asProgram },
    'in a terminal, with coloured text': { start: inTerminal, problem: pseudoTerminalProblem },
  }
