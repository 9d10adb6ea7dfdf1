import { join } from 'node:path'
import { loadConfig } from '../../config/load.ts'
import { ConfigError } from '../../config/problems.ts'
import type { BuiltinServer, ServerConfig } from '../../config/snapshot.ts'
import { fillIn } from '../../config/variables.ts'
import { WORKSPACE_NAME } from '../../config/workspace-schema.ts'
import type { MemoryAdminOptions } from '../../servers/memory/memory-admin.ts'
import type { Groups } from '../../servers/memory/store.ts'
import { DATA_FLAG, dataDirectoryOf, type Flags, type FlagValues, textOf, textsOf, UsageError } from '../usage.ts'

/** The flags that select a memory. */
export const TARGET_FLAGS: Flags = {
  workspace: { value: 'NAME', help: 'the memory of this workspace (default)' },
  principal: { value: 'NAME', help: 'the memory of this principal, if each has its own' },
  anybody: { help: 'the memory of anonymous callers, if each principal has its own' },
  group: {
    value: 'NAME',
    many: true,
    help: 'only this group; repeatable (default: all groups; for add and import: main)',
  },
  config: { value: 'FILE', help: 'use the memory server of this configuration' },
  ...DATA_FLAG,
  database: { value: 'URL', help: 'a PostgreSQL database instead; ${NAME} is replaced by the environment variable' },
}

type MemoryServer = Extract<BuiltinServer, { builtin: 'memory' }>

/** Reads which memory the flags select. */
export const readTarget = async (flags: FlagValues): Promise<MemoryAdminOptions> => {
  const settings = await settingsIn(textOf(flags, 'config'))
  return {
    folder: join(dataDirectoryOf(flags), 'memory'),
    database: databaseOf(flags) ?? settings?.database,
    tenant: tenantOf(flags, settings?.tenant ?? 'workspace'),
    group: settings?.group ?? 'main',
    extracts: settings?.extraction !== undefined,
    embeds: settings?.embeddings !== undefined,
  }
}

const settingsIn = async (file: string | undefined): Promise<MemoryServer | undefined> => {
  if (file === undefined) return undefined
  const { servers } = await loadConfig({ file, env: process.env })
  const found = [...servers.values()].find(isMemory)
  if (found) return found
  const why = [...servers.values()].flatMap(server =>
    server.kind === 'unavailable' && server.reason.startsWith('memory.') ? [`: ${server.reason}`] : [],
  )
  throw new ConfigError(`${file} has no "builtin": "memory" that can be used${why[0] ?? ''}`)
}

const isMemory = (server: ServerConfig): server is MemoryServer & ServerConfig =>
  server.kind === 'builtin' && server.builtin === 'memory'

const databaseOf = (flags: FlagValues): string | undefined => {
  const given = textOf(flags, 'database')
  if (given === undefined) return undefined
  const filled = fillIn(given, process.env)
  if (filled.kind === 'missing') throw new UsageError(`--database: ${filled.reason}`)
  if (/^postgres(ql)?:\/\//.test(filled.text)) return filled.text
  throw new UsageError('--database: expected an address like postgres://user@host/name')
}

const tenantOf = (flags: FlagValues, by: MemoryServer['tenant']): string => {
  const given = ['workspace', 'principal', 'anybody'].filter(name => flags[name] !== undefined)
  if (given.length > 1) throw new UsageError(`--${given.join(' and --')} do not go together; keep one of them`)
  if (flags.anybody) return 'anybody'
  const principal = textOf(flags, 'principal')
  if (principal === '') throw new UsageError('--principal: expected a name')
  if (principal !== undefined) return `principal:${principal}`
  const workspace = textOf(flags, 'workspace')
  if (workspace === undefined && by === 'principal')
    throw new UsageError('each principal has a memory of its own in this configuration; give --principal NAME')
  if (workspace !== undefined && !WORKSPACE_NAME.test(workspace))
    throw new UsageError(`--workspace: ${JSON.stringify(workspace)} is not a workspace name`)
  return `workspace:${workspace ?? 'default'}`
}

const GROUP = /^[A-Za-z0-9_-]{1,255}$/

export const groupsOf = (flags: FlagValues): Groups => {
  const groups = textsOf(flags, 'group')
  const wrong = groups.find(group => !GROUP.test(group))
  if (wrong !== undefined)
    throw new UsageError(`--group: ${JSON.stringify(wrong)} is not a group name: use letters, digits, "-" and "_"`)
  return groups.length === 0 ? 'all' : [...new Set(groups)]
}

/** The single group of an action that takes one. */
export const oneGroup = (groups: Groups): string | undefined => {
  if (groups === 'all') return undefined
  if (groups.length > 1) throw new UsageError('--group: only one group can be named here')
  return groups[0]
}

/** The owner of a memory, for messages. */
export const ownerText = (tenant: string): string => {
  const [kind = '', ...name] = tenant.split(':')
  return name.length === 0 ? 'anonymous callers' : `${kind} ${name.join(':')}`
}
