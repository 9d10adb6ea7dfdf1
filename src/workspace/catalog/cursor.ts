import { randomBytes } from 'node:crypto'
import { type Keyring, open, seal } from '../../wire/seal.ts'
import type { ListKind } from './view.ts'

/** Where a list goes on. */
export interface ListCursor {
  readonly kind: ListKind
  readonly hash: string
  readonly page: number
}

/** Of this process only: a list does not outlive it, so why should a place in it. */
const keyring: Keyring = { current: { id: 'l', key: randomBytes(32) } }

/** Nobody can read or make up a cursor. */
export const sealCursor = ({ kind, hash: epoch, page }: ListCursor): string =>
  seal(keyring, JSON.stringify([kind, epoch, page]))

/** The place a cursor stands for; undefined for one that is not ours, or from before. */
export const openCursor = (cursor: string): ListCursor | undefined => {
  const text = open(keyring, cursor)
  if (!text) return undefined
  const [kind, epoch, page] = JSON.parse(text.toString()) as [ListKind, string, number]
  return { kind, hash: epoch, page }
}
