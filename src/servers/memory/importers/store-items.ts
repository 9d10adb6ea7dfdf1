import { RequestError } from '../input-checks.ts'
import type { Episode, NewEntity, NewFact } from '../model.ts'
import type { EpisodeInput, Remember } from '../remember.ts'
import { type By, type MemoryStore, StoreError } from '../store.ts'

/** One item of an imported file; `where` names its place for the report. */
export type ImportItem =
  | {
      readonly kind: 'episode'
      readonly where: string
      readonly input: EpisodeInput
      readonly isUndated?: boolean // its time is that of the file, so a changed time is not a change
    }
  | {
      readonly kind: 'facts'
      readonly where: string
      readonly group: string
      readonly entities: readonly NewEntity[]
      readonly facts: readonly NewFact[]
    }
  /** The end of a sequence: episodes of an earlier, longer version with these uuids are deleted. */
  | { readonly kind: 'end'; readonly uuidOf: (number: number) => string; readonly from: number }
  | { readonly kind: 'fault'; readonly where: string; readonly why: string }

/** The file that items come from. */
export interface ImportOrigin {
  readonly name: string // for the names of episodes
  readonly key: string // identifies the file in uuids
  readonly group: string // of items that name none
  readonly givenGroup: string | undefined // overrides the groups in the data
  readonly modified: number
}

/** Where items are stored. */
export interface ImportTarget {
  readonly store: MemoryStore
  readonly remember: Remember
  readonly by: By
  readonly signal?: AbortSignal | undefined
}

/** An item that was not imported. */
export interface ImportFault {
  readonly where: string
  readonly why: string
}

/** The report of an import that found nothing. */
export const EMPTY_REPORT = {
  format: '',
  created: 0,
  replaced: 0,
  removed: 0, // episodes of an earlier, longer version
  same: 0,
  entities: 0,
  facts: 0,
  passedOver: 0, // files that are neither text nor Markdown
  faults: [] as readonly ImportFault[], // the first MOST_FAULTS
  faulty: 0,
  isInterrupted: false,
}

export type ImportReport = Readonly<typeof EMPTY_REPORT>

/** The most faults that a report lists. */
export const MOST_FAULTS = 20

/** Stores items one by one, each completely or not at all; an invalid item is reported and skipped. */
export const storeItems = async (items: AsyncIterable<ImportItem>, target: ImportTarget): Promise<ImportReport> => {
  const report = { ...EMPTY_REPORT }
  const addFault = (where: string, why: string): void => {
    report.faulty++
    report.faults = [...report.faults, { where, why }].slice(0, MOST_FAULTS)
  }
  const storeItem = async (item: ImportItem): Promise<void> => {
    switch (item.kind) {
      case 'episode':
        report[await storeEpisode(item.input, item.isUndated ?? false, target)]++
        return
      case 'facts': {
        const added = await target.store.addFacts(item.group, item)
        report.entities += item.entities.length
        report.facts += added.facts.length
        return
      }
      case 'end':
        report.removed += await deleteFrom(item, target)
        return
      case 'fault':
        addFault(item.where, item.why)
    }
  }
  for await (const item of items) {
    if (target.signal?.aborted) return { ...report, isInterrupted: true }
    try {
      await storeItem(item)
    } catch (error) {
      if (!isAboutItem(error) || item.kind === 'end') throw error
      addFault(item.where, error.message)
    }
  }
  return report
}

/** Whether the item is invalid; other errors, like a full disk, end the import. */
const isAboutItem = (error: unknown): error is Error =>
  error instanceof RequestError ||
  (error instanceof StoreError && (error.kind === 'invalid' || error.kind === 'missing'))

const storeEpisode = async (
  input: EpisodeInput,
  isUndated: boolean,
  { store, remember, by }: ImportTarget,
): Promise<'created' | 'replaced' | 'same'> => {
  const stored = input.uuid === undefined ? undefined : await store.episode(input.uuid)
  if (stored && isEqual(input, stored, isUndated)) return 'same'
  try {
    return (await remember(store, input, by)).outcome
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'invalid' || input.uuid === undefined) throw error
    // The uuid belongs to something else here, or the episode is stored under another one.
    return (await remember(store, { ...input, uuid: undefined }, by)).outcome
  }
}

const isEqual = (input: EpisodeInput, stored: Episode, isUndated: boolean): boolean =>
  input.group === stored.group &&
  input.body === stored.content &&
  input.name === stored.name &&
  input.source === stored.source &&
  input.sourceDescription === stored.sourceDescription &&
  (isUndated || input.validAt === undefined || input.validAt === stored.validAt)

const deleteFrom = async (
  { uuidOf, from }: Extract<ImportItem, { kind: 'end' }>,
  { store, by }: ImportTarget,
): Promise<number> => {
  let number = from
  for (; await store.episode(uuidOf(number)); number++) await store.deleteEpisode(uuidOf(number), by)
  return number - from
}
