import { Json } from '../wire/json/json.ts'
import { REVISIONS, type Revision } from './revisions.ts'

const LAST_LEGACY: Revision = '2025-11-25'

/** Capabilities of a client that a revision added. What the specification never named is not here and survives. */
const ADDED: Readonly<Record<string, Revision>> = { tasks: LAST_LEGACY }

/** The same for what stands inside a capability, which was an empty object before. */
const ADDED_WITHIN: Readonly<Record<string, Readonly<Record<string, Revision>>>> = {
  elicitation: { form: LAST_LEGACY, url: LAST_LEGACY },
  sampling: { context: LAST_LEGACY, tools: LAST_LEGACY },
}

/** What every strict parser of a legacy revision knows, and which members within. */
const BARE: Readonly<Record<string, readonly string[] | 'all'>> = {
  experimental: 'all',
  roots: ['listChanged'],
  sampling: [],
  elicitation: [],
}

/** Without the members that came after a revision. A capability itself stays: a client that declares it can do it. */
export const capabilitiesKnownTo = (capabilities: Json, revision: Revision): Json => {
  let known = capabilities.without(...newerThan(revision, ADDED))
  for (const [name, members] of Object.entries(ADDED_WITHIN)) {
    const value = known.get(name)
    const newer = newerThan(revision, members).filter(member => value?.isObject && value.has(member))
    if (value && newer.length > 0) known = known.with(name, value.without(...newer))
  }
  return known
}

const newerThan = (revision: Revision, added: Readonly<Record<string, Revision>>): string[] =>
  Object.keys(added).filter(name => REVISIONS.indexOf(added[name] as Revision) > REVISIONS.indexOf(revision))

/** The least that says the same, for servers that reject a handshake because of a member they do not know. */
export const bareCapabilities = (capabilities: Json): Json => {
  const kept = Object.entries(BARE).flatMap(([name, members]): [string, Json][] => {
    const value = capabilities.get(name)
    if (!value) return []
    return [[name, members === 'all' ? value : pick(value, members)]]
  })
  return Json.of(Object.fromEntries(kept))
}

const pick = (value: Json, members: readonly string[]): Json =>
  value.isObject
    ? value.without(...value.entries().flatMap(([name]) => (members.includes(name) ? [] : [name])))
    : Json.empty
