import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { checkError, discard, draft, edits, isChecking, isDirty, issues } from './store.ts'

/** What waits to be saved; it keeps its place below the tables while there is a draft. */
export const DraftBar = ({ onReview }: { readonly onReview: () => void }) => {
  if (!isDirty.value) return null
  const count = edits.value.length
  const what = draft.value.text === undefined ? plural(count, 'unsaved change') : 'Unsaved text'
  const names = [...new Set(edits.value.map(({ path }) => path.slice(0, 2).at(-1) ?? ''))]
  const wrong = issues.value.length
  return (
    <div class="config-bar" role="region" aria-label="Unsaved changes">
      <strong>{what}</strong>
      <span class="quiet truncate config-grow">{names.join(', ')}</span>
      <span role="status" class={checkError.value ? 'config-error' : 'quiet'}>
        {checkError.value ?? (isChecking.value ? 'checking…' : wrong === 0 && 'valid')}
        {!isChecking.value && wrong > 0 && (
          <button type="button" class="link config-error" onClick={onReview}>
            {plural(wrong, 'problem')}
          </button>
        )}
      </span>
      <Button onClick={discard}>Discard</Button>
      <Button kind="primary" keys="mod+S" onClick={onReview}>
        Review and save
      </Button>
    </div>
  )
}
