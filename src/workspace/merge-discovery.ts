import type { NameStyle } from '../config/snapshot.ts'
import { Json } from '../wire/json/json.ts'

const LISTED = ['tools', 'prompts', 'resources'] as const
const CHANGES = Json.of({ listChanged: true })

/** All lists a workspace can have. Clients that read capabilities only once need them for servers that connect later. */
const ALL_LISTS = Json.of({ tools: CHANGES, prompts: CHANGES, resources: CHANGES })

/** The capabilities of all members together. */
export const mergeCapabilities = (all: readonly Json[], isReadOnce: boolean): Json => {
  const known = isReadOnce || all.length === 0 ? [ALL_LISTS, ...all] : all
  let merged = Json.empty
  for (const capabilities of known)
    for (const [name, value] of capabilities.entries()) {
      const before = merged.get(name)
      merged = merged.with(name, before ? mergeCapability(name, before, value) : value)
    }
  const tasks = merged.get('tasks')
  if (tasks?.isObject) merged = merged.with('tasks', tasks.without('list')) // the tasks of one member are not those of all
  // The gateway itself announces changes when members come and go.
  for (const name of LISTED) {
    const value = merged.get(name)
    if (value?.isObject) merged = merged.with(name, value.with('listChanged', true))
  }
  return merged
}

const mergeCapability = (name: string, a: Json, b: Json): Json => {
  if (!a.isObject || !b.isObject) return a.asBoolean() === false || b.isObject ? b : a
  return name === 'extensions' ? mergeExtensions(a, b) : mergeSettings(a, b)
}

/** Each id once; settings that differ are dropped. */
const mergeExtensions = (a: Json, b: Json): Json => {
  let merged = a
  for (const [id, settings] of b.entries()) {
    const before = merged.get(id)
    merged = merged.with(id, before && before.toString() !== settings.toString() ? {} : settings)
  }
  return merged
}

/** A setting is on if one of the members has it. */
const mergeSettings = (a: Json, b: Json): Json => {
  if (!a.isObject || !b.isObject) return a.asBoolean() === false ? b : a
  let merged = a
  for (const [key, value] of b.entries()) {
    const before = merged.get(key)
    merged = merged.with(key, before ? mergeSettings(before, value) : value)
  }
  return merged
}

const MOST_EACH = 4 * 1024 // bytes
const MOST_IN_ALL = 16 * 1024
const ELLIPSIS = '…'

interface ServerInstructions {
  readonly namespace: string
  readonly text: string
}

const SEPARATORS: Readonly<Record<NameStyle, string | undefined>> = { prefix: '__', slash: '/', plain: undefined }

/** The instructions of several servers as one text with a heading for each; undefined if no server has any. */
export const mergeInstructions = (all: readonly ServerInstructions[], style: NameStyle): string | undefined => {
  const sections = all.flatMap(({ namespace, text }) =>
    text.trim() === '' ? [] : `## ${namespace}\n\n${truncate(text.trim(), MOST_EACH)}`,
  )
  if (sections.length === 0) return undefined
  const separator = SEPARATORS[style]
  const rule =
    separator &&
    `This server joins several. Tools and prompts of each are named \`<server>${separator}<name>\`; below, each calls its own by \`<name>\`.`
  return truncate([rule, ...sections].filter(part => part !== undefined).join('\n\n'), MOST_IN_ALL)
}

const WORD_CHARACTER = '[\\p{L}\\p{N}]'
const SPECIAL = /[\\^$.*+?()[\]{}|]/g

/** Whether a text contains one of these names as a word, in any case. */
export const mentionsAny = (text: string, names: readonly string[]): boolean =>
  names.some(name =>
    new RegExp(`(?<!${WORD_CHARACTER})${name.replace(SPECIAL, '\\$&')}(?!${WORD_CHARACTER})`, 'iu').test(text),
  )

/** Cuts a text to a number of bytes, never within a character. */
const truncate = (text: string, mostBytes: number): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= mostBytes) return text
  let end = mostBytes - Buffer.byteLength(ELLIPSIS)
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + ELLIPSIS
}
