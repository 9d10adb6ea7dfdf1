import { connectV2 } from '../../support/client-v2.ts'
import type { Upstream } from './cells.ts'
import { assertCompanions, startCompanions } from './companions.ts'
import { startDaemon, type Way } from './daemon.ts'
import type { Programs } from './programs.ts'
import { UPSTREAMS } from './upstreams.ts'

/** A server with a daemon before it. */
export interface Station {
  url(way: Way): string
  close(): Promise<void>
}

/** Starts a server, its companions and the daemon, or all of them or nothing. */
export const startStation = async (upstream: Upstream, folder: string, programs: Programs): Promise<Station> => {
  const started: { close(): Promise<void> }[] = []
  const close = async (): Promise<void> => {
    for (const { close } of started.splice(0).reverse()) await close()
  }
  try {
    const server = await UPSTREAMS[upstream](programs)
    started.push(server)
    const companions = await startCompanions(folder, programs)
    started.push(companions)
    const daemon = await startDaemon(folder, server.entry, companions.entries)
    started.push({ close: daemon.stop })
    return { url: daemon.url, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Starts a server that the suite can speak to itself, without the gateway. */
export const startDirect = async (upstream: Upstream, programs: Programs): Promise<Station> => {
  const { url, close } = await UPSTREAMS[upstream](programs)
  return { url: () => String(url), close }
}

/** Fails where the companions are not, or not any more, in the workspace the suite was shown. */
export const checkCompanions = async (url: string): Promise<void> => {
  const client = await connectV2('SDK v2 modern', { url })
  assertCompanions(await client.toolNames().finally(client.close))
}
