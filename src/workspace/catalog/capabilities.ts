import { Json } from '../../wire/json/json.ts'

const LISTED = ['tools', 'prompts', 'resources'] as const
const CHANGES = Json.of({ listChanged: true })

/** What a workspace can have, whoever joins it later: for callers who ask only once. */
const SUPERSET = Json.of({ tools: CHANGES, prompts: CHANGES, resources: CHANGES })

/** The capabilities of all members together. Tasks are left out: they are promised to callers of one server only. */
export const mergeCapabilities = (all: readonly Json[], asksOnlyOnce: boolean): Json => {
  const known = asksOnlyOnce || all.length === 0 ? [SUPERSET, ...all] : all
  let merged = Json.empty
  for (const capabilities of known)
    for (const [name, value] of capabilities.entries()) {
      if (name === 'tasks') continue
      const before = merged.get(name)
      merged = merged.with(name, before ? join(name, before, value) : value)
    }
  // The workspace itself tells of members that come and go.
  for (const name of LISTED) {
    const value = merged.get(name)
    if (value?.isObject) merged = merged.with(name, value.with('listChanged', true))
  }
  return merged
}

const join = (name: string, a: Json, b: Json): Json => {
  if (!a.isObject || !b.isObject) return a.asBoolean() === false || b.isObject ? b : a
  return name === 'extensions' ? joinExtensions(a, b) : joinSettings(a, b)
}

/** Each id once; settings that differ are nobody's. */
const joinExtensions = (a: Json, b: Json): Json => {
  let joined = a
  for (const [id, settings] of b.entries()) {
    const before = joined.get(id)
    joined = joined.with(id, before && before.toString() !== settings.toString() ? {} : settings)
  }
  return joined
}

/** Whatever one of them can do. */
const joinSettings = (a: Json, b: Json): Json => {
  if (!a.isObject || !b.isObject) return a.asBoolean() === false ? b : a
  let joined = a
  for (const [key, value] of b.entries()) {
    const before = joined.get(key)
    joined = joined.with(key, before ? joinSettings(before, value) : value)
  }
  return joined
}
