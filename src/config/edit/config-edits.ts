import { isDeepStrictEqual } from 'node:util'
import type { ConfigPath } from '../json-text.ts'
import { ConfigError, formatPath } from '../problems.ts'
import { BUILT_IN } from '../schema.ts'
import { isRawObject, type RawObject } from '../server-entries.ts'
import { editJson, parseEdited } from './json-edit.ts'
import { renameMember } from './json-members.ts'
import { writeOutServers } from './own-file.ts'

/** One change of a configuration file; `before` is the value that its author saw. */
export type StructuralEdit =
  | { readonly kind: 'set'; readonly path: readonly string[]; readonly value: unknown; readonly before?: unknown }
  | { readonly kind: 'remove'; readonly path: readonly string[]; readonly before?: unknown }
  | { readonly kind: 'rename'; readonly path: readonly string[]; readonly to: string }

/** Applies edits to the text of a file, one after the other. Throws a ConfigError if one does not fit. */
export const applyEdits = (file: string, text: string | undefined, edits: readonly StructuralEdit[]): string =>
  edits.reduce<string>((now, edit) => applyEdit(file, now, edit), text ?? '')

const applyEdit = (file: string, text: string, edit: StructuralEdit): string => {
  const root = (text.trim() === '' ? {} : parseEdited(file, text)) as RawObject
  const { path } = edit
  if (path.length === 0) throw new ConfigError('an edit needs the path of a value')
  // Built-in servers that one word asks for must be written out before one of them can be changed.
  const isBuiltIn = root.mcpServers === BUILT_IN && path[0] === 'mcpServers' && path.length > 1
  const start = isBuiltIn ? writeOutServers(file, text) : text
  if (edit.kind !== 'rename')
    return editJson(file, start, [{ path, value: edit.kind === 'set' ? edit.value : undefined }])
  const parent = valueAt(isBuiltIn ? parseEdited(file, start) : root, path.slice(0, -1))
  const [name, to] = [path.at(-1) ?? '', edit.to]
  if (!isRawObject(parent) || !Object.hasOwn(parent, name)) throw new ConfigError(`${formatPath(path)} does not exist`)
  if (to !== name && Object.hasOwn(parent, to))
    throw new ConfigError(`${formatPath([...path.slice(0, -1), to])} exists already; choose another name`)
  return renameMember(start, path, to)
}

/** The value at a path; undefined if there is none. */
const valueAt = (root: unknown, path: ConfigPath): unknown =>
  path.reduce<unknown>((value, step) => {
    if (Array.isArray(value)) return value[Number(step)]
    return isRawObject(value) && Object.hasOwn(value, step) ? value[String(step)] : undefined
  }, root)

/** An edit of a value that another change has made something else. */
export interface ConflictingEdit {
  readonly path: readonly string[]
  readonly now: unknown
  readonly wanted: unknown
}

/** The edits that cannot be applied to a value without undoing what another author did. */
export const conflictsIn = (root: unknown, edits: readonly StructuralEdit[]): readonly ConflictingEdit[] => {
  let value = root
  return edits.flatMap((edit): ConflictingEdit[] => {
    const { path } = edit
    const now = valueAt(value, path)
    if (edit.kind === 'rename') {
      const target = [...path.slice(0, -1), edit.to]
      const other = valueAt(value, target)
      if (now === undefined || other !== undefined) return [{ path, now: other, wanted: edit.to }]
      value = renamed(value, path, edit.to)
      return []
    }
    const wanted = edit.kind === 'set' ? edit.value : undefined
    return isDeepStrictEqual(now, edit.before) || isDeepStrictEqual(now, wanted) ? [] : [{ path, now, wanted }]
  })
}

const renamed = (value: unknown, [step, ...rest]: readonly string[], to: string): unknown =>
  !isRawObject(value)
    ? value
    : Object.fromEntries(
        Object.entries(value).map(([name, member]) => {
          if (name !== step) return [name, member]
          return rest.length === 0 ? [to, member] : [name, renamed(member, rest, to)]
        }),
      )
