import { readFile } from 'node:fs/promises'
import { ConfigError } from '../config/problems.ts'
import type { ClusterConfig, Snapshot } from '../config/snapshot.ts'
import { type Cluster, type ClusterOptions, openCluster } from '../fronts/cluster/cluster.ts'
import type { ClusterTls } from '../fronts/cluster/cluster-address.ts'
import type { Membership, StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'

const ANY_ADDRESS: ClusterConfig = { labels: [] }

/** How other replicas reach this one; undefined if the store has no other replicas. */
export const clusterOf = ({ cluster }: Snapshot, store: StateStore, log: Log): ClusterConfig | undefined => {
  const { engine } = store.health()
  if (engine === 'postgres') return cluster ?? ANY_ADDRESS
  if (engine === 'memory') return cluster // shared within one process
  if (cluster) log.warn({}, '"cluster" has no effect: replicas need a "store" that they share, a postgres:// address')
  return undefined
}

/** Opens the port for other replicas; throws a ConfigError if that is not possible. */
export const joinCluster = async (config: ClusterConfig, options: Omit<ClusterOptions, 'config'>): Promise<Cluster> => {
  const cluster = await openCluster({ ...options, config }).catch((error: NodeJS.ErrnoException) => {
    const where = config.listen ? `${config.listen.host}:${config.listen.port}` : 'a free port'
    throw new ConfigError(`cannot listen for other replicas on ${where}: ${error.message}; change "cluster.listen"`)
  })
  options.log.info({ address: cluster.address }, 'listening for other replicas')
  return cluster
}

/** Reads the certificates with which replicas prove who they are; throws a ConfigError. */
export const readCertificates = async (tls: ClusterConfig['tls']): Promise<ClusterTls | undefined> => {
  if (!tls) return undefined
  const { cert, key, ca } = tls
  const [certText, keyText, caText] = await Promise.all([cert, key, ca].map(readPem))
  return { cert: certText as string, key: keyText as string, ca: caText as string }
}

const readPem = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`cannot read ${file} of "cluster.tls": ${error.message}`)
  })

/** The number of replicas; a command that reads the store is a member, too, and serves no caller. */
export const serving = (members: Membership): number => members.all().filter(({ address }) => address !== '').length
