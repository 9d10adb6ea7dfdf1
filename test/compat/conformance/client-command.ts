import { fileURLToPath } from 'node:url'
import { startNode } from './children.ts'
import type { Way } from './daemon.ts'
import type { Programs } from './programs.ts'

const COMMAND = fileURLToPath(new URL('./client-command.mjs', import.meta.url))
const START_MS = 20_000

/** A running client host, and the command by which the suite gives it a scenario. */
export interface ClientHost {
  readonly command: readonly string[]
  close(): Promise<void>
}

/** Starts the process that is the client in all scenarios of a cell. */
export const startClientHost = (client: string, way: Way, programs: Programs): Promise<ClientHost> =>
  new Promise((resolve, reject) => {
    const host = startNode([programs('compat/conformance/client-host.js'), client, way], () => {
      const [, port] = /^port (\d+)\n/m.exec(host.output()) ?? []
      if (port === undefined) return
      clearTimeout(impatience)
      resolve({ command: [process.execPath, COMMAND, port], close: host.stop })
    })
    const impatience = setTimeout(() => void host.stop(), START_MS)
    void host.ended.then(() => reject(new Error(`The client host ended:\n${host.tail()}`)))
  })
