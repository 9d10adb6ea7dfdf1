import { Refusal } from '../refusal.ts'
import type { Remember, Told } from '../remember.ts'
import { type By, type MemoryStore, StoreError } from '../store.ts'
import type { Item } from './item.ts'

/** Where things are kept, and by whom. */
export interface Keep {
  readonly store: MemoryStore
  readonly remember: Remember
  readonly by: By
  readonly signal?: AbortSignal | undefined
}

/** Something that could not be imported. */
export interface Fault {
  readonly where: string
  readonly why: string
}

/** What an import did. */
export interface Counts {
  readonly format: string
  readonly created: number
  readonly replaced: number
  readonly removed: number // of an earlier, longer version
  readonly same: number
  readonly entities: number
  readonly facts: number
  readonly passedOver: number // files that are neither text nor Markdown
  readonly faults: readonly Fault[] // the first of them
  readonly faulty: number
  readonly isInterrupted: boolean
}

/** An import that found nothing. */
export const NOTHING: Counts = {
  format: '',
  created: 0,
  replaced: 0,
  removed: 0,
  same: 0,
  entities: 0,
  facts: 0,
  passedOver: 0,
  faults: [],
  faulty: 0,
  isInterrupted: false,
}

type Tally = { -readonly [K in keyof Omit<Counts, 'faults'>]: Counts[K] } & { faults: Fault[] }

const MOST_FAULTS = 20

/** Keeps one item after the other, each whole or not at all; what cannot be kept is put down and passed over. */
export const keepItems = async (items: AsyncIterable<Item>, keep: Keep): Promise<Counts> => {
  const tally: Tally = { ...NOTHING, faults: [] }
  const blame = (where: string, why: string): void => {
    tally.faulty++
    if (tally.faults.length < MOST_FAULTS) tally.faults.push({ where, why })
  }
  for await (const item of items) {
    if (keep.signal?.aborted) return { ...tally, isInterrupted: true }
    try {
      await keepOne(item, keep, tally, blame)
    } catch (error) {
      if (!isAboutItem(error) || item.kind === 'end') throw error
      blame(item.where, error.message)
    }
  }
  return tally
}

/** What is wrong with one item; a full disk is wrong with all of them. */
const isAboutItem = (error: unknown): error is Error =>
  error instanceof Refusal || (error instanceof StoreError && (error.kind === 'invalid' || error.kind === 'missing'))

const keepOne = async (
  item: Item,
  keep: Keep,
  tally: Tally,
  blame: (where: string, why: string) => void,
): Promise<void> => {
  switch (item.kind) {
    case 'episode':
      tally[await keepEpisode(item.told, item.isUndated ?? false, keep)]++
      return
    case 'facts': {
      const added = await keep.store.addFacts(item.group, item, keep.by)
      tally.entities += item.entities.length
      tally.facts += added.facts.length
      return
    }
    case 'end':
      tally.removed += await removeFrom(item, keep)
      return
    case 'fault':
      blame(item.where, item.why)
  }
}

const keepEpisode = async (told: Told, isUndated: boolean, keep: Keep): Promise<'created' | 'replaced' | 'same'> => {
  const { store, remember, by } = keep
  const known = told.uuid === undefined ? undefined : await store.episode(told.uuid)
  if (known && known.group === told.group && isEqual(told, known, isUndated)) return 'same'
  try {
    return (await remember(store, told, by)).outcome
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'invalid' || told.uuid === undefined) throw error
    // Its uuid stands for something else here, or it is here under another one.
    return (await remember(store, { ...told, uuid: undefined }, by)).outcome
  }
}

const isEqual = (told: Told, known: NonNullable<Awaited<ReturnType<MemoryStore['episode']>>>, isUndated: boolean) =>
  told.body === known.content &&
  told.name === known.name &&
  told.source === known.source &&
  told.sourceDescription === known.sourceDescription &&
  (isUndated || told.validAt === undefined || told.validAt === known.validAt)

const removeFrom = async ({ uuidOf, from }: Extract<Item, { kind: 'end' }>, { store, by }: Keep): Promise<number> => {
  let number = from
  for (; await store.episode(uuidOf(number)); number++) await store.deleteEpisode(uuidOf(number), by)
  return number - from
}
