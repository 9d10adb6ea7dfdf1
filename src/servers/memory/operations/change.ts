import type { FactChange, MemoryUpload, NewMemory } from '../../../protocol/memory-operations.ts'
import type { ForgetPlan, ForgetRequest, ForgetResult, ImportSummary } from '../../../protocol/memory-views.ts'
import { importFrom } from '../importers/import.ts'
import { checkDate, checkGroupId, checkLength, LONGEST, RequestError } from '../input-checks.ts'
import { type EpisodeInput, type Remember, sourceOf, titleOf } from '../remember.ts'
import type { FactEdit } from '../store/edit.ts'
import type { Forget, MemoryStore, PreviewedRow } from '../store.ts'

/** The actor in the audit log of a memory. */
export const BY_CONSOLE = { actor: 'console' }

export const episodeInput = (memory: NewMemory, group: string): EpisodeInput => ({
  group: checkGroupId(memory.group ?? group),
  name: memory.name?.trim() || titleOf(memory.text),
  body: memory.text,
  source: sourceOf(memory.source ?? 'text'),
  sourceDescription: 'console',
  validAt: memory.at === undefined ? undefined : checkDate(memory.at, 'at: '),
})

const dateIn = (given: string | null | undefined, name: string): number | null | undefined =>
  typeof given === 'string' ? checkDate(given, `${name}: `) : given

export const factEdit = ({ text, relation, validFrom, validUntil }: FactChange): FactEdit => {
  checkLength('text', text, LONGEST.sentence)
  checkLength('relation', relation, LONGEST.name)
  if (text?.trim() === '') throw new RequestError('text: is empty; to remove the fact, delete it')
  if (relation?.trim() === '') throw new RequestError('relation: is empty; write a name like WORKS_AT')
  return {
    fact: text?.trim(),
    name: relation?.trim(),
    validAt: dateIn(validFrom, 'validFrom'),
    invalidAt: dateIn(validUntil, 'validUntil'),
  }
}

const forgetOf = (request: ForgetRequest): Forget => {
  switch (request.kind) {
    case 'group':
      return { kind: 'group', group: checkGroupId(request.group) }
    case 'entity':
      return { kind: 'entity', uuid: request.id }
    case 'subject': {
      const { name, group } = request
      if (name.trim() === '') throw new RequestError('name: is empty; write the name of a person or thing')
      return { kind: 'subject', name: name.trim(), groups: group === undefined ? 'all' : [checkGroupId(group)] }
    }
  }
}

/** What would be erased, and what of it only because it is connected with what was named. */
export const planForget = async (store: MemoryStore, request: ForgetRequest): Promise<ForgetPlan> => {
  const preview = await store.previewForget(forgetOf(request))
  const rowsOf = (rows: readonly PreviewedRow[]) => rows.map(({ uuid, ...row }) => ({ id: uuid, ...row }))
  return {
    episodes: rowsOf(preview.episodes),
    entities: rowsOf(preview.entities),
    facts: rowsOf(preview.facts),
  }
}

/** Erases, and searches the files for what was erased. */
export const forgetNow = async (store: MemoryStore, request: ForgetRequest): Promise<ForgetResult> => {
  const { erased, checked, gone, files, clean } = await store.forget(forgetOf(request), BY_CONSOLE)
  return {
    episodes: erased.episodes.length,
    entities: erased.entities.length,
    facts: erased.facts.length,
    passages: erased.docs,
    checked,
    gone,
    places: files,
    isClean: clean,
  }
}

const CUT_OFF =
  'The upload ended before the file did. What was stored so far stays; import the file again to complete it'

/** The chunks of an upload; one that breaks off is an error, so that half a text is not stored as a whole one. */
const chunksOf = async function* (content: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of content) yield chunk
  } catch {
    throw new RequestError(CUT_OFF)
  }
}

export const importUpload = async (
  { name, modified, format, group, content }: MemoryUpload,
  target: { readonly store: MemoryStore; readonly remember: Remember; readonly group: string },
): Promise<ImportSummary> => {
  const {
    faults,
    passedOver,
    isInterrupted: _,
    ...report
  } = await importFrom({
    ...target,
    source: { stream: chunksOf(content), file: { name, path: `upload:${name}`, modified } },
    format,
    given: group === undefined ? undefined : checkGroupId(group),
    by: BY_CONSOLE,
    progress: () => {},
  })
  return { ...report, faults, skipped: passedOver }
}
