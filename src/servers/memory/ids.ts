import { hash, randomUUID } from 'node:crypto'
import type { Instant } from './model.ts'

/** A new uuid of version 7: it starts with the time, so that new rows lie together in every index. */
export const newUuid = (now: Instant): string => {
  const time = (Math.max(0, Math.trunc(now)) % 2 ** 48).toString(16).padStart(12, '0')
  // A version 4 uuid has its random bits in the same places, and Node.js draws them in batches.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** A uuid of version 8 derived from the given parts: equal parts give an equal uuid. */
export const uuidFor = (...parts: readonly (string | number)[]): string => {
  const bytes = hash('sha256', JSON.stringify(parts), 'buffer').subarray(0, 16)
  bytes[6] = 0x80 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

const digestOf = (text: string): Uint8Array => hash('sha256', text, 'buffer').subarray(0, 16)

const normalised = (text: string): string => text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim()

/** Identifies a fact by its words and its two entities, whichever episode states it. */
export const normHash = (group: string, sourceId: number, targetId: number, fact: string): Uint8Array =>
  digestOf(`${group}\n${sourceId}\n${targetId}\n${normalised(fact)}`)

/** Identifies an episode by its content, so that adding it twice stores it once. */
export const contentHash = (episode: {
  readonly name: string
  readonly content: string
  readonly source: string
  readonly sourceDescription: string
  readonly saga?: string | undefined
}): Uint8Array => {
  const { name, content, source, sourceDescription, saga } = episode
  const parts = [source, name, sourceDescription, saga ?? '', content]
  return digestOf(parts.map(part => `${part.length}:${part}`).join(''))
}
