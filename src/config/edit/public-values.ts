import { isRawObject, type RawObject, SERVER_KEYS } from '../server-entries.ts'

// What callers see who may look at the configuration but not change it: no text that could be a secret.

const HIDDEN = '${hidden}'

/** Texts of an entry that are no secrets. */
const PLAIN_KEYS: ReadonlySet<string> = new Set(
  'type command builtin on era pool share enabledTools disabledTools grant login issuer scopes tenant group'.split(' '),
)
const HIDDEN_SECTIONS: ReadonlySet<string> = new Set(['store', 'telemetry'])
const PLAIN_PATH = /^\/?(mcp|sse)?\/?$/

/** A configuration without anything that could be a secret. */
export const publicValue = (root: RawObject): RawObject =>
  mapMembers(root, (name, value) => {
    if (SERVER_KEYS.some(key => key === name)) return mapMembers(value, (_, entry) => hideTexts(entry, ''))
    if (HIDDEN_SECTIONS.has(name)) return hideAll(value)
    return name === 'workspaces' ? mapMembers(value, (_, workspace) => withoutArguments(workspace)) : value
  }) as RawObject

const mapMembers = (value: unknown, change: (name: string, member: unknown) => unknown): unknown =>
  isRawObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, change(name, member)]))
    : value

const hideTexts = (value: unknown, name: string): unknown => {
  if (PLAIN_KEYS.has(name)) return value
  if (typeof value === 'string') return /url$/i.test(name) ? publicUrl(value) : HIDDEN
  if (Array.isArray(value)) return value.map(() => HIDDEN)
  return mapMembers(value, (key, member) => hideTexts(member, key))
}

const hideAll = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(hideAll)
  return isRawObject(value) ? mapMembers(value, (_, member) => hideAll(member)) : HIDDEN
}

/** The origin of an address; its path only if it says nothing. */
const publicUrl = (text: string): string => {
  const url = URL.parse(text)
  if (!url) return HIDDEN
  return PLAIN_PATH.test(url.pathname) && url.search === '' ? `${url.origin}${url.pathname}` : `${url.origin}/${HIDDEN}`
}

/** Fixed and default arguments of tools are hidden from callers. */
const withoutArguments = (workspace: unknown): unknown =>
  mapMembers(workspace, (key, value) =>
    key === 'tools'
      ? mapMembers(value, (_, overlay) =>
          mapMembers(overlay, (name, member) => (name === 'arguments' ? hideAll(member) : member)),
        )
      : value,
  )
