import { META } from '../../protocol/meta.ts'
import { methodRow } from '../../protocol/methods.ts'
import { SERVED } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

const LISTEN = 'subscriptions/listen'
const DISCOVER = 'server/discover'

/**
 * A result as 2026-07-28 wants it: clients refuse one without its type, and a list without its cache hints, whatever
 * the server forgot. Which revisions are served, and under which id somebody listens, only the front knows.
 */
export const modernResult = (method: string, result: Json, id: Json): Json => {
  const typed = result.has('resultType') ? result : result.with('resultType', 'complete')
  if (method === LISTEN) return tagged(typed, id)
  if (!methodRow(method)?.cacheable || typed.get('resultType')?.asString() !== 'complete') return typed
  const timed = typed.has('ttlMs') ? typed : typed.with('ttlMs', 0)
  const scoped = timed.has('cacheScope') ? timed : timed.with('cacheScope', 'private')
  return method === DISCOVER ? scoped.with('supportedVersions', SERVED) : scoped
}

/** What travels on a listener's stream carries the id it listens under. */
export const tagged = (payload: Json, id: Json): Json => {
  const meta = payload.get('_meta')
  return payload.with('_meta', (meta?.isObject ? meta : Json.empty).with(META.subscriptionId, id))
}
