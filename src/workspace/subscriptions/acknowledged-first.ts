import type { Frame, Sink } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'

const MOST_HELD = 256 // further ones are dropped: a listener that is never acknowledged must not fill the memory

/**
 * The sink of a `subscriptions/listen` that holds notifications back until the acknowledgement: the specification forbids
 * them before it. Of several equal ones the latest is kept.
 */
export const acknowledgedFirst = (sink: Sink): Sink => {
  let held: Map<string, Frame> | undefined = new Map() // undefined: acknowledged or over
  return frame => {
    if (!held || frame.kind === 'question') return sink(frame)
    if (frame.kind === 'notice' && frame.method !== NOTIFICATIONS.acknowledged) {
      const key = keyOf(frame) ?? `${held.size}`
      if (held.has(key) || held.size < MOST_HELD) held.set(key, frame)
      return
    }
    const waiting = frame.kind === 'notice' ? [...held.values()] : []
    held = undefined
    const behind = [frame, ...waiting].flatMap(each => sink(each) ?? [])
    return behind.length > 0 ? Promise.all(behind).then(() => {}) : undefined
  }
}

/** Equal for notifications of which one says as much as several. */
const keyOf = ({ method, params }: Frame & { kind: 'notice' }): string | undefined => {
  if (method.endsWith('/list_changed')) return method
  return method === NOTIFICATIONS.resourceUpdated ? `${method} ${params.get('uri')}` : undefined
}
