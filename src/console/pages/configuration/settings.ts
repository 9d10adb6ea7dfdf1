import type { ConfigDocument, ConfigObject } from '../../../admin/api/config.ts'
import { valueAt } from '../../form/form-value.ts'
import { isObject } from '../../mcp/messages.ts'
import { isEqual } from './edits.ts'
import { type ConfigSchema, defaultText } from './schema.ts'

// The settings beside servers, workspaces and policies, with where each value comes from: pure functions.

export interface SettingRow {
  readonly at: string // limits.bodyBytes
  readonly text: string
  readonly source: 'file' | 'default' | 'flag' | 'not set'
  readonly isChanged: boolean // by the draft
  readonly about: string
}

const ENTRIES: ReadonlySet<string> = new Set(['$schema', 'mcpServers', 'servers', 'workspaces', 'policies'])

/** One row for each setting that the schema knows, and for what the file sets below it. */
export const settingRows = (
  schema: ConfigSchema | undefined,
  root: ConfigObject,
  value: ConfigObject,
  running: ConfigDocument['running'] | undefined,
): readonly SettingRow[] =>
  Object.entries(schema?.properties ?? {})
    .filter(([section]) => !ENTRIES.has(section))
    .flatMap(([section, part]) => rowsOf(part, [section], { root, value, running }))

interface SettingContext {
  readonly root: ConfigObject
  readonly value: ConfigObject
  readonly running: ConfigDocument['running'] | undefined
}

const rowsOf = (schema: ConfigSchema, path: readonly string[], context: SettingContext): readonly SettingRow[] => {
  const { root, value, running } = context
  const given = valueAt(value, path)
  if (schema.properties && (given === undefined || isObject(given)))
    return Object.entries(schema.properties).flatMap(([name, part]) => rowsOf(part, [...path, name], context))
  const before = valueAt(root, path)
  const own = given ?? schema.default
  const flag = path[0] === 'listen' ? { host: running?.host, port: running?.port }[path[1] ?? ''] : undefined
  const isFlag = flag !== undefined && isEqual(before, given) && flag !== own
  return [
    {
      at: path.join('.'),
      text: isFlag ? String(flag) : (defaultText(own) ?? ''),
      source: isFlag ? 'flag' : given !== undefined ? 'file' : own === undefined ? 'not set' : 'default',
      isChanged: !isEqual(before, given),
      about: schema.description ?? '',
    },
  ]
}
