import type { ConfigEdit, ConfigObject } from '../../../admin/api/config.ts'
import { valueAt } from '../../form/form-value.ts'
import { isObject } from '../../mcp/messages.ts'

// Values of the configuration and the edits that lead from one to another: pure functions.

type Path = readonly string[]

/** A key that has got another name; the path has the name before. */
export interface KeyRename {
  readonly path: Path
  readonly to: string
}

/** What the user has changed: of a text, if they have edited that, else of the file. */
export interface DraftValue {
  readonly root: ConfigObject // before the changes
  readonly value: ConfigObject
  readonly renames: readonly KeyRename[]
}

export const isEqual = (a: unknown, b: unknown): boolean => {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => isEqual(item, b[at]))
  if (!isObject(a) || !isObject(b)) return a === b
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => Object.hasOwn(b, key) && isEqual(a[key], b[key]))
}

export const objectAt = (root: unknown, path: Path): ConfigObject => {
  const found = valueAt(root, path)
  return isObject(found) ? found : {}
}

/** The same with another value at a path; undefined removes it. Other values on the way are replaced by objects. */
export const withValue = (root: unknown, [key, ...rest]: Path, next: unknown): ConfigObject => {
  if (key === undefined) return isObject(next) ? next : {}
  const { [key]: before, ...others } = isObject(root) ? root : {}
  const changed = rest.length === 0 ? next : withValue(before, rest, next)
  if (changed === undefined) return others
  return isObject(root) && Object.hasOwn(root, key) ? { ...root, [key]: changed } : { ...others, [key]: changed }
}

/** The same with another name for a key, in its place. */
const withName = (root: unknown, path: Path, to: string): ConfigObject => {
  const [key, ...rest] = path
  if (!isObject(root) || key === undefined) return isObject(root) ? root : {}
  return Object.fromEntries(
    Object.entries(root).map(([name, member]) => {
      if (name !== key) return [name, member]
      return rest.length === 0 ? [to, member] : [name, withName(member, rest, to)]
    }),
  )
}

/** The edits that lead from one value to another: as small as they can be, so that they rarely meet those of others. */
export const editsBetween = (before: unknown, after: unknown, path: Path = []): readonly ConfigEdit[] => {
  if (isEqual(before, after)) return []
  if (isObject(before) && isObject(after)) {
    const removed = Object.keys(before).filter(key => !Object.hasOwn(after, key))
    return [
      ...removed.map(key => ({ kind: 'remove' as const, path: [...path, key], before: before[key] })),
      ...Object.keys(after).flatMap(key => editsBetween(before[key], after[key], [...path, key])),
    ]
  }
  return [{ kind: 'set', path, value: after, ...(before !== undefined && { before }) }]
}

/** All edits of a draft, the renames first. */
export const editsOf = ({ root, value, renames }: DraftValue): readonly ConfigEdit[] => {
  const renamed = renames.reduce<ConfigObject>((now, { path, to }) => withName(now, path, to), root)
  return [...renames.map(rename => ({ kind: 'rename' as const, ...rename })), ...editsBetween(renamed, value)]
}

/** The draft with a key renamed. A key that is new in the draft needs no rename of its own. */
export const renameKey = ({ root, value, renames }: DraftValue, path: Path, to: string): DraftValue => {
  const [name, parent] = [path.at(-1) ?? '', path.slice(0, -1)]
  const earlier = renames.find(rename => rename.to === name && isEqual(rename.path.slice(0, -1), parent))
  const kept = renames.filter(rename => rename !== earlier)
  const origin = earlier?.path ?? path
  const isKnown = valueAt(root, origin) !== undefined
  const added = isKnown && origin.at(-1) !== to ? [{ path: origin, to }] : []
  return { root, value: withName(value, path, to), renames: [...kept, ...added] }
}

/** The draft on top of another value: what others have changed stays, except where the draft changes the same value. */
export const rebase = (draft: DraftValue, root: ConfigObject): DraftValue =>
  editsOf(draft).reduce<DraftValue>(
    (now, edit) => {
      if (edit.kind === 'rename')
        return valueAt(now.value, edit.path) === undefined ? now : renameKey(now, edit.path, edit.to)
      const { root, renames } = now
      return { root, renames, value: withValue(now.value, edit.path, edit.kind === 'set' ? edit.value : undefined) }
    },
    { root, value: root, renames: [] },
  )
