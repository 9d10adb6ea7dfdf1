import { hash } from 'node:crypto'

const words = (text: string): string => text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim()

/** The mark by which a fact is known again: its words and its two ends, whoever tells it. */
export const normHash = (group: string, sourceId: number, targetId: number, fact: string): Uint8Array =>
  hash('sha256', `${group}\n${sourceId}\n${targetId}\n${words(fact)}`, 'buffer').subarray(0, 16)

/** The mark by which an episode told twice is known again. */
export const contentHash = (episode: {
  readonly name: string
  readonly content: string
  readonly source: string
  readonly sourceDescription: string
  readonly saga?: string | undefined
}): Uint8Array => {
  const { name, content, source, sourceDescription, saga } = episode
  const parts = [source, name, sourceDescription, saga ?? '', content]
  return hash('sha256', parts.map(part => `${part.length}:${part}`).join(''), 'buffer').subarray(0, 16)
}
