import type { NetworkInterfaceInfo } from 'node:os'
import type { ClusterConfig } from '../../config/snapshot.ts'

/** Certificates for both directions: each replica proves with one that it belongs to the cluster. */
export interface ClusterTls {
  readonly cert: string // PEM
  readonly key: string
  readonly ca: string // that signed the certificates of all replicas
}

type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

const LOOPBACK = '127.0.0.1'
const LINK_LOCAL = /^(fe[89ab]|169\.254\.)/i

/** The machine's first address that other machines may reach, IPv4 first; loopback if there is none. */
export const firstAddress = (interfaces: Interfaces): string => {
  const found = Object.values(interfaces)
    .flatMap(list => list ?? [])
    .filter(({ internal, address }) => !internal && !LINK_LOCAL.test(address))
  return (found.find(({ family }) => family === 'IPv4') ?? found[0])?.address ?? LOOPBACK
}

const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Where the cluster port listens: as configured, else at any free port of the machine's first address. */
export const clusterListen = ({ listen }: Pick<ClusterConfig, 'listen'>, interfaces: Interfaces) =>
  listen ?? { host: firstAddress(interfaces), port: 0 }

/** The URL at which other replicas reach a port that listens at `host`. */
export const clusterAddress = (
  { address, tls }: Pick<ClusterConfig, 'address' | 'tls'>,
  { host, port }: { readonly host: string; readonly port: number },
  interfaces: Interfaces,
): string => {
  if (address !== undefined) return address
  const reachable = EVERY_ADDRESS.has(host) ? firstAddress(interfaces) : host
  return `${tls ? 'https' : 'http'}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
