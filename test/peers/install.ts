import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type Command, runCommand, tailOf } from './process.ts'

/** A peer that is ready to run, or why it is not: no toolchain, or the registry cannot be reached. */
export type Installed =
  | { readonly kind: 'ready'; readonly folder: string }
  | { readonly kind: 'skipped'; readonly reason: string }

/** How a peer is installed. */
export interface Recipe {
  readonly name: string
  /** Answers without error where the toolchain is there. */
  readonly toolchain: Command
  /** Files and folders whose contents the result depends on. */
  readonly sources: readonly string[]
  /** Downloads into the folder; if this fails the peer is skipped. */
  readonly download: (folder: string) => Command
  /** Compiles; if this fails the peer is broken, and that is an error. */
  readonly compile?: (folder: string) => Command
}

const TOOLCHAIN_MS = 20_000
const DOWNLOAD_MS = 240_000
const COMPILE_MS = 900_000

/** Where installed peers are kept between runs, outside the tree. */
export const cacheRoot = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dragoman-peers')

const installing = new Map<string, Promise<Installed>>()

/** Installs a peer once; later runs find it in the cache until one of its sources changes. */
export const install = (recipe: Recipe): Promise<Installed> => {
  const folder = join(cacheRoot(), `${recipe.name}-${digestOf(recipe.sources)}`)
  const running = installing.get(folder) ?? installInto(folder, recipe)
  installing.set(folder, running)
  return running
}

const installInto = async (folder: string, recipe: Recipe): Promise<Installed> => {
  const { name, toolchain, download, compile } = recipe
  const version = await runCommand(toolchain, TOOLCHAIN_MS)
  if (version.code !== 0) return { kind: 'skipped', reason: `${name}: "${toolchain.command}" is not installed` }
  if (existsSync(folder)) return { kind: 'ready', folder }
  // Made beside its place and moved there: another process never sees half of it.
  const draft = `${folder}.${process.pid}`
  await rm(draft, { recursive: true, force: true })
  await mkdir(draft, { recursive: true })
  try {
    const downloaded = await runCommand(yielding(download(draft)), DOWNLOAD_MS)
    if (downloaded.code !== 0) return { kind: 'skipped', reason: `${name}: download failed: ${tailOf(downloaded)}` }
    const compiled = compile && (await runCommand(yielding(compile(draft)), COMPILE_MS))
    if (compiled && compiled.code !== 0) throw new Error(`${name} does not compile:\n${tailOf(compiled, 40)}`)
    await rename(draft, folder).catch(error => {
      if (!existsSync(folder)) throw error
    })
    return { kind: 'ready', folder }
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** Other tests have deadlines: an installation gives way to them. */
const yielding = ({ command, args, ...rest }: Command): Command =>
  process.platform === 'win32' ? { command, args, ...rest } : { command: 'nice', args: [command, ...args], ...rest }

const digestOf = (paths: readonly string[]): string => {
  const hash = createHash('sha256')
  for (const file of paths.flatMap(filesOf)) hash.update(readFileSync(file))
  return hash.digest('hex').slice(0, 16)
}

const filesOf = (path: string): string[] =>
  statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name))
        .sort()
    : [path]
