import { startBalancer } from '../../support/balancer.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { startPostgres } from '../../support/postgres.ts'
import type { Upstream } from './cells.ts'
import { assertBudget, assertCompanions, startCompanions } from './companions.ts'
import { type Daemon, startDaemon, type Way } from './daemon.ts'
import type { Programs } from './programs.ts'
import { UPSTREAMS } from './upstreams.ts'

/** The label of the replica that runs a server which is not remote. */
const FIRST = 'first'

/** A server with a daemon before it, or several behind a round-robin proxy. */
export interface Station {
  url(way: Way): string
  close(): Promise<void>
}

/** How many daemons there are, and processes of each. */
interface StationSize {
  readonly replicas?: number
  readonly workers?: number
}

/** Starts a server, its companions and the daemon, or so many replicas of it; all of them or nothing. */
export const startStation = async (
  upstream: Upstream,
  folder: string,
  programs: Programs,
  { replicas = 1, workers = 1 }: StationSize = {},
): Promise<Station> => {
  const started: { close(): Promise<void> }[] = []
  const close = async (): Promise<void> => {
    for (const { close } of started.splice(0).reverse()) await close()
  }
  try {
    const server = await UPSTREAMS[upstream](programs)
    started.push(server)
    const companions = await startCompanions(folder, programs)
    started.push(companions)
    const postgres = replicas > 1 ? await startPostgres() : undefined
    if (postgres) started.push({ close: postgres.stop })
    // The suite changes the lists of its server and expects to see that: there is one of it, as there is of a remote one.
    const entry = postgres && server.isLocal ? { ...server.entry, on: FIRST } : server.entry
    const daemons: Daemon[] = []
    for (let at = 0; at < replicas; at++) {
      const daemon = await startDaemon(folder, entry, companions.entries, {
        name: `daemon-${at}`,
        ...(workers > 1 && { workers }),
        ...(postgres && { store: postgres.url, cluster: { labels: at === 0 ? [FIRST] : [] } }),
      })
      started.push({ close: daemon.stop })
      daemons.push(daemon)
    }
    const [first] = daemons
    if (first && daemons.length === 1) return { url: first.url, close }
    const balancer = await startBalancer(() => daemons.map(({ origin }) => origin))
    started.push(balancer)
    return { url: way => `${balancer.origin}/mcp/${way}`, close }
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

/** Fails where the workspace the suite was shown lists all tools, or where a tool that it does not list cannot be found. */
export const checkBudget = async (url: string): Promise<void> => {
  const client = await connectV2('SDK v2 modern', { url })
  try {
    const found = await client.call('search_tools', { query: 'tell the time' })
    assertBudget(await client.toolNames(), JSON.stringify(found))
  } finally {
    await client.close()
  }
}
