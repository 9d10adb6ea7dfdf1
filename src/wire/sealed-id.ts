import { sealBytes, unsealBytes } from './seal.ts'

/** What an id is for. One minted for one purpose is not accepted for another. */
export type IdPurpose = 'session' | 'channel' | 'question' | 'round'

/** What an id says to the replica that opens it. */
export interface IdContent {
  readonly home: string // the replica that minted it
  readonly workspace: string
}

const LONGEST_ID = 2048 // characters
const FORM = /^(?:[0-9a-f]{2})+$/ // the only spelling of an id, so that one session never has two

/** A new id that cannot be guessed, read or changed without the key. Hex: some SSE clients cut ids at a `-`. */
export const mintId = (key: Uint8Array, purpose: IdPurpose, { home, workspace }: IdContent): string =>
  sealBytes(key, purpose, JSON.stringify([home, workspace])).toString('hex')

/** What an id says, if it was minted for this purpose with one of the keys; undefined for anything else. */
export const openId = (keys: readonly Uint8Array[], purpose: IdPurpose, id: string): IdContent | undefined => {
  if (id.length > LONGEST_ID || !FORM.test(id)) return undefined
  const sealed = Buffer.from(id, 'hex')
  for (const key of keys) {
    const content = unsealBytes(key, purpose, sealed)
    if (!content) continue
    const [home, workspace] = JSON.parse(content.toString()) as [string, string]
    return { home, workspace }
  }
  return undefined
}
