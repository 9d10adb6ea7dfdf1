import { resolve } from 'node:path'
import { fillInSection } from './fill-in-section.ts'
import type { ConfigReport } from './problems.ts'
import { readWith } from './read-with.ts'
import { listOf, object, textSchema } from './schema-parts.ts'
import type { ClusterConfig } from './snapshot.ts'
import type { Environment } from './variables.ts'

const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[^\s:/@?#[\]]+):(\d{1,5})$/i
const ORIGIN = /^https?:\/\/[^\s/?#@]+\/?$/i
const file = textSchema.min(1, { error: 'expected a file' })

/** What is special about a replica. */
export const labelSchema = textSchema.regex(/^[\w.-]{1,64}$/, {
  error: 'expected letters, digits, "-", "_" and "."',
})

/** `cluster`: how the other replicas on the same store reach this one. */
export const clusterSchema = object({
  listen: textSchema
    .refine(text => Number(HOST_AND_PORT.exec(text)?.[2] ?? Number.NaN) <= 65535, {
      error: 'expected a host and a port, like "0.0.0.0:8766"',
    })
    .optional()
    .describe('Where this replica listens for the others; a free port of its first address when absent.'),
  address: textSchema
    .regex(ORIGIN, { error: 'expected the URL of a host and a port without a path, like "http://10.0.0.5:8766"' })
    .optional()
    .describe('The URL at which the others reach it; made from "listen" when absent.'),
  labels: listOf(labelSchema)
    .max(32, { error: 'expected at most 32 labels' })
    .default([])
    .describe('What is special about this replica, for servers with "on".'),
  tls: object({
    cert: file.describe('The certificate of this replica, a PEM file; relative to this file.'),
    key: file.describe('Its key, a PEM file.'),
    ca: file.describe('The authority that signed the certificates of all replicas, a PEM file.'),
  })
    .optional()
    .describe('Certificates with which the replicas prove to each other who they are.'),
}).describe('How the other replicas on the same "store" reach this one.')

/** The section `cluster` with its variables filled in; undefined if the file has none. */
export const readCluster = (raw: unknown, env: Environment, report: ConfigReport): ClusterConfig | undefined => {
  if (raw === undefined) return undefined
  const read = readWith(clusterSchema, fillInSection(raw, env, ['cluster'], report), ['cluster'], report)
  if (!read) return undefined
  const { listen, address, labels, tls } = read
  if (tls && address?.toLowerCase().startsWith('http:'))
    report.problems.push({ path: ['cluster', 'address'], message: 'expected an https URL, because "tls" is given' })
  if (!tls && address?.toLowerCase().startsWith('https:'))
    report.problems.push({ path: ['cluster', 'tls'], message: 'expected certificates, because "address" is https' })
  return {
    listen: listen === undefined ? undefined : hostAndPort(listen),
    address: address?.replace(/\/$/, ''),
    labels,
    tls,
  }
}

/** Relative files of certificates count from the folder of the file. */
export const locateCertificates = (cluster: ClusterConfig | undefined, folder: string): ClusterConfig | undefined => {
  const { tls } = cluster ?? {}
  if (!cluster || !tls) return cluster
  const { cert, key, ca } = tls
  return { ...cluster, tls: { cert: resolve(folder, cert), key: resolve(folder, key), ca: resolve(folder, ca) } }
}

const hostAndPort = (text: string): { host: string; port: number } => {
  const [, host = '', port = ''] = HOST_AND_PORT.exec(text) ?? []
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/** Whether a server runs on a replica with this configuration. */
export const runsHere = ({ on }: { readonly on?: string | undefined }, cluster: ClusterConfig | undefined): boolean =>
  on === undefined || (cluster?.labels.includes(on) ?? false)
