import { randomUUID } from 'node:crypto'
import type { Instant } from './model.ts'

/** A new uuid of version 7: it begins with the time, so that new rows lie together in every index. */
export const newUuid = (now: Instant): string => {
  const time = (Math.max(0, Math.trunc(now)) % 2 ** 48).toString(16).padStart(12, '0')
  // One of version 4 has its random bits in the same places, and they are drawn many at a time.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
