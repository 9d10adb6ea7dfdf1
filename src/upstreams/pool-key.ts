import type { PoolManner } from '../config/snapshot.ts'
import type { Caller } from '../protocol/exchange.ts'
import type { Json } from '../wire/json.ts'

/** Equal for callers who may share a session; undefined for one who shares not even with himself. */
export const poolKey = (caller: Caller, manner: PoolManner = 'sticky'): string | undefined => {
  const { workspace, principal, session, capabilities, affinity = '' } = caller
  if (session !== undefined) return JSON.stringify(['session', workspace, session])
  // Whoever nobody knows could be anybody, so he shares with nobody.
  if (principal === undefined || manner === 'isolated') return undefined
  const owner = manner === 'stateless' ? [] : [principal, affinity]
  return JSON.stringify(['shared', workspace, fingerprint(capabilities), ...owner])
}

// A client writes its capabilities the same way every time.
const fingerprints = new Map<string, string>()
const MOST_FINGERPRINTS = 1000

/** Equal for capabilities that mean the same; servers shape their lists by them. */
const fingerprint = (capabilities: Json): string => {
  const text = capabilities.toString()
  const known = fingerprints.get(text)
  if (known !== undefined) return known
  if (fingerprints.size >= MOST_FINGERPRINTS) fingerprints.clear()
  const made = JSON.stringify(sorted(capabilities.toValue()))
  fingerprints.set(text, made)
  return made
}

const sorted = (value: unknown): unknown => {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => [key, sorted(member)])
}
