import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Where `install-peers.mjs` puts other gateways: the folder that BENCH_PEERS names, else `bench/.peers`. */
const FOLDER = process.env.BENCH_PEERS ?? fileURLToPath(new URL('../.peers', import.meta.url))

/** A program that the benchmark looks for and never installs. */
export interface Program {
  readonly path: string | undefined // undefined: not installed
  readonly install: string // the command that installs it
}

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** A program in the folder of the peers, installed by `npm --prefix bench run install-peers`. */
export const installedPeer = (path: string): Program => {
  const found = join(FOLDER, path)
  return { path: isExecutable(found) ? found : undefined, install: 'npm --prefix bench run install-peers' }
}

/** Debian keeps daemons where the PATH of most users does not look. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/local/sbin']

/** A program that the environment variable names by its path, else one on PATH. */
export const programOnPath = (name: string, install: string, named?: string): Program => {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS]
  const candidates = named === undefined ? folders.map(folder => join(folder, name)) : [named]
  return { path: candidates.find(isExecutable), install }
}

/** The versions that are in the folder of the peers. */
export const installedVersions = (): Readonly<Record<string, string>> => {
  const file = join(FOLDER, 'versions.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>) : {}
}
