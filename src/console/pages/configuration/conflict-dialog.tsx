import { useState } from 'preact/hooks'
import type { ConfigEdit } from '../../../admin/api/config.ts'
import { valueAt } from '../../form/form-value.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { toast } from '../../parts/toast.tsx'
import { Difference } from './difference.tsx'
import { isEqual } from './edits.ts'
import { discard, draft, edits, file, mergeDraft, newer } from './store.ts'

/** Edits of values that have become something else meanwhile. */
const conflictsWith = (value: unknown, all: readonly ConfigEdit[]): readonly ConfigEdit[] =>
  all.filter(edit => {
    if (edit.kind === 'rename') return valueAt(value, edit.path) === undefined
    const now = valueAt(value, edit.path)
    return !isEqual(now, edit.before) && !isEqual(now, edit.kind === 'set' ? edit.value : undefined)
  })

/** The file has changed while the user was editing: their edits go on top of the new text, or are given up. */
export const ConflictDialog = ({ onClose }: { readonly onClose: () => void }) => {
  const [isStuck, setStuck] = useState(false)
  const [before, now] = [file.value, newer.value]
  if (!before || !now) return null
  const isText = draft.value.text !== undefined
  const conflicts = isText ? [] : conflictsWith(now.value, edits.value)
  const isBroken = !isText && now.issues.some(({ path, line }) => path.length === 0 && line !== undefined)

  const merge = (isForced = false): void => {
    if (!mergeDraft(isForced)) return setStuck(true)
    toast('Your changes are on top of the new text. Review and save them.', { kind: 'ok' })
    onClose()
  }
  return (
    <Dialog
      title="The file has changed"
      size="large"
      onClose={onClose}
      footer={
        <>
          <Button
            kind="danger"
            onClick={() => {
              discard()
              onClose()
            }}
          >
            Discard my changes
          </Button>
          {isStuck ? (
            <Button onClick={() => merge(true)}>Keep my text instead</Button>
          ) : (
            <Button kind="primary" disabled={isBroken} onClick={() => merge()}>
              Apply my changes to the new text
            </Button>
          )}
        </>
      }
    >
      <p>
        Another tab, program or editor has changed <code>{now.file}</code> since you began. Nothing of yours was saved
        or lost.
      </p>
      {isBroken && (
        <p class="config-error">The new text is not valid JSON. Repair it in the file, then apply your changes.</p>
      )}
      {isStuck && (
        <p class="config-error" role="alert">
          Both of you changed the same lines, so the texts cannot be merged. Copy what you need from the difference, or
          keep your text: the other change is then undone.
        </p>
      )}
      {conflicts.length > 0 && (
        <section>
          <h3>Changed by both; yours would replace the other</h3>
          <ul class="config-flaws">
            {conflicts.map(({ path }) => (
              <li key={path.join('\n')}>
                <code>{path.join('.')}</code>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <h3>What has changed in the file</h3>
        <Difference label="What has changed in the file" before={before.text ?? ''} after={now.text ?? ''} />
      </section>
    </Dialog>
  )
}
