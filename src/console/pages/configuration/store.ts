import { computed, signal } from '@preact/signals'
import type {
  ConfigCheck,
  ConfigConflict,
  ConfigDocument,
  ConfigDraft,
  ConfigObject,
  ConfigSaved,
} from '../../../admin/api/config.ts'
import type { GatewayStatus } from '../../../protocol/status.ts'
import { ApiError, api, messageOf } from '../../api.ts'
import { type DraftValue, editsOf, rebase } from './edits.ts'
import { mergeTexts } from './lines.ts'
import type { ConfigSchema } from './schema.ts'

// The configuration and the draft of the user. The draft lives as long as the tab: other pages do not lose it.

const CHECK_MS = 250

interface Draft extends DraftValue {
  readonly text?: string | undefined // the user has edited the file itself
}

const EMPTY: Draft = { root: {}, value: {}, renames: [] }

/** The file that the draft starts from. */
export const file = signal<ConfigDocument | undefined>(undefined)
export const loadError = signal<string | undefined>(undefined)
export const schema = signal<ConfigSchema | undefined>(undefined)
export const status = signal<GatewayStatus | undefined>(undefined)
/** The file as it is now, if it has changed since the draft was begun. */
export const newer = signal<ConfigDocument | undefined>(undefined)
export const draft = signal<Draft>(EMPTY)
export const checked = signal<ConfigCheck | undefined>(undefined)
export const isChecking = signal(false)
export const checkError = signal<string | undefined>(undefined)

export const edits = computed(() => editsOf(draft.value))
export const isDirty = computed(
  () => edits.value.length > 0 || (draft.value.text !== undefined && draft.value.text !== file.value?.text),
)
export const canEdit = computed(() => file.value?.edit.isAllowed === true && file.value.text !== undefined)
export const issues = computed(() => (isDirty.value ? checked.value?.issues : file.value?.issues) ?? [])
/** The text with all changes; the last one that was checked while the next check runs. */
export const draftText = computed(() => {
  const { text } = draft.value
  if (text !== undefined && edits.value.length === 0) return text
  return (isDirty.value ? checked.value?.text : undefined) ?? file.value?.text ?? ''
})

const body = (): ConfigDraft => ({ text: draft.value.text, edits: edits.value })

/** Reads the file. A draft is kept: what has changed meanwhile is shown beside it. */
export const refresh = async (): Promise<void> => {
  try {
    const found = await api.get<ConfigDocument>('admin/config')
    loadError.value = undefined
    if (!isDirty.value || file.value === undefined) accept(found)
    else if (found.etag !== file.value.etag) newer.value = found
    else file.value = found
  } catch (error) {
    loadError.value = messageOf(error)
  }
}

export const loadStatus = async (): Promise<void> => {
  status.value = await api.get<GatewayStatus>('admin/status').catch(() => status.value)
}

export const loadSchema = async (): Promise<void> => {
  schema.value ??= await api.get<ConfigSchema>('admin/config/schema').catch(() => undefined)
}

const accept = (found: ConfigDocument): void => {
  file.value = found
  newer.value = undefined
  checked.value = undefined
  checkError.value = undefined
  draft.value = { root: found.value, value: found.value, renames: [] }
}

export const discard = (): void => {
  pending?.abort()
  if (file.value) accept(newer.value ?? file.value)
}

/** Changes the draft and has it checked. */
export const change = (edit: (now: DraftValue) => DraftValue): void => {
  const { text } = draft.value
  draft.value = { ...edit(draft.value), text }
  checkSoon()
}

/** Edits the file itself; earlier edits are in the text already. */
export const changeText = (text: string): void => {
  draft.value = { ...draft.value, root: draft.value.value, renames: [], text }
  checkSoon()
}

let timer: ReturnType<typeof setTimeout> | undefined
let pending: AbortController | undefined

const checkSoon = (): void => {
  clearTimeout(timer)
  pending?.abort()
  isChecking.value = isDirty.value
  if (!isDirty.value) checked.value = undefined
  else timer = setTimeout(() => void checkNow(), CHECK_MS)
}

/** Checks the draft; a later change cancels it. */
export const checkNow = async (): Promise<void> => {
  clearTimeout(timer)
  pending?.abort()
  const abort = new AbortController()
  pending = abort
  isChecking.value = true
  try {
    const sent = draft.value
    const found = await api.post<ConfigCheck>('admin/config/check', body(), { signal: abort.signal })
    if (abort.signal.aborted) return
    checked.value = found
    checkError.value = undefined
    // The forms show what the text says, as far as it can be read.
    if (sent.text !== undefined && edits.value.length === 0 && found.value) setRoot(found.value)
    if (found.etag !== file.value?.etag) void refresh()
  } catch (error) {
    if (abort.signal.aborted) return
    checkError.value = messageOf(error)
  }
  isChecking.value = false
}

const setRoot = (value: ConfigObject): void => {
  draft.value = { ...draft.value, root: value, value, renames: [] }
}

/** Writes the draft. Throws an ApiError, or returns what is in the way. */
export const save = async (): Promise<ConfigSaved | ConfigConflict> => {
  try {
    const saved = await api.put<ConfigSaved>('admin/config', body(), {
      headers: { 'if-match': `"${file.value?.etag ?? ''}"` },
    })
    accept(await api.get<ConfigDocument>('admin/config'))
    void loadStatus()
    return saved
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) throw error
    newer.value = await api.get<ConfigDocument>('admin/config')
    return error.details as ConfigConflict
  }
}

/** Puts the draft on top of the file as it is now; false if the user must decide which text counts. */
export const mergeDraft = (isForced = false): boolean => {
  const [found, before, mine] = [newer.value, file.value, draft.value]
  if (!found || !before) return true
  if (mine.text === undefined) draft.value = rebase(mine, found.value)
  else {
    const merged = isForced ? draftText.value : mergeTexts(before.text ?? '', draftText.value, found.text ?? '')
    if (merged === undefined) return false
    draft.value = { root: found.value, value: found.value, renames: [], text: merged }
  }
  file.value = found
  newer.value = undefined
  void checkNow()
  return true
}
