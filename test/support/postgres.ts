import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** A PostgreSQL for tests, and how to end it. */
export interface TestPostgres {
  readonly url: string
  /** Ends it like a crash. */
  kill(): Promise<void>
  /** Starts it again with what it had stored. */
  restart(): Promise<void>
  stop(): Promise<void>
}

const run = promisify(execFile)
const DEBIAN = '/usr/lib/postgresql'
const NAME = 'postgres'

const isRoot = process.getuid?.() === 0

const onPath = (): string | undefined =>
  process.env.PATH?.split(':').find(folder => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'pg_ctl')))

/** Where the programs are: on the path, or where Debian puts them, the newest version. */
const programs = (): string | undefined => {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : []
  return (
    onPath() ?? versions.map(version => join(DEBIAN, version, 'bin')).find(folder => existsSync(join(folder, 'initdb')))
  )
}

/** PostgreSQL refuses to run as root; Debian's package brings a user for it. */
const accountId = (flag: '-u' | '-g'): number | undefined => {
  if (!isRoot) return undefined
  const { status, stdout } = spawnSync('id', [flag, NAME], { encoding: 'utf8' })
  return status === 0 ? Number(stdout) : undefined
}

/** Why no PostgreSQL can be had here, or undefined when one can. */
export const whyNoPostgres = (): string | undefined => {
  if (process.env.DATABASE_URL) return undefined
  if (!programs()) return 'no PostgreSQL: install the package "postgresql", or set DATABASE_URL'
  if (isRoot && accountId('-u') === undefined)
    return 'PostgreSQL refuses to run as root, and there is no user "postgres"'
  return undefined
}

const asUser = async (program: string, args: readonly string[]): Promise<void> => {
  const [uid, gid] = [accountId('-u'), accountId('-g')]
  await run(program, args, { cwd: '/', ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }) })
}

// It is thrown away: nothing need survive a power cut. What is committed must survive `kill`, so commits are synchronous.
const SETTINGS = '-c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=200'

const refuse = async (): Promise<void> => {
  throw new Error('the PostgreSQL of DATABASE_URL is not ours to end')
}

/** Starts a server of its own in a folder that goes with it, reached by a socket in that folder; or names the one of DATABASE_URL. */
export const startPostgres = async (): Promise<TestPostgres> => {
  if (process.env.DATABASE_URL)
    return { url: process.env.DATABASE_URL, kill: refuse, restart: refuse, stop: async () => {} }
  const why = whyNoPostgres()
  const bin = programs()
  if (why || !bin) throw new Error(why)
  const folder = await mkdtemp('/tmp/pg-') // A socket's path must be short.
  const [uid, gid] = [accountId('-u'), accountId('-g')]
  if (uid !== undefined && gid !== undefined) await chown(folder, uid, gid)
  const data = join(folder, 'data')
  const ctl = (...args: readonly string[]) => asUser(join(bin, 'pg_ctl'), ['-D', data, '-w', '-t', '60', ...args])
  const start = () => ctl('start', '-l', join(folder, 'log'), '-o', `${SETTINGS} -k ${folder}`)
  try {
    await asUser(join(bin, 'initdb'), ['-D', data, '-U', NAME, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'])
    await start()
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return {
    url: `postgresql://${NAME}@localhost/${NAME}?host=${encodeURIComponent(folder)}`,
    kill: () => ctl('stop', '-m', 'immediate'),
    restart: start,
    stop: async () => {
      await ctl('stop', '-m', 'immediate').catch(() => {}) // it may have been killed
      await rm(folder, { recursive: true, force: true })
    },
  }
}
