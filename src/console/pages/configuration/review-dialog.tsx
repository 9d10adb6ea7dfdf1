import { useEffect, useState } from 'preact/hooks'
import type { ConfigSaved } from '../../../admin/api/config.ts'
import { messageOf } from '../../api.ts'
import { useShortcuts } from '../../keys.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { toast } from '../../parts/toast.tsx'
import { Difference } from './difference.tsx'
import { IssueList } from './issue-list.tsx'
import { PlanList, planSize } from './plan-list.tsx'
import { checkError, checked, checkNow, file, isChecking, issues, newer, save } from './store.ts'

interface ReviewDialogProps {
  readonly onClose: () => void
  readonly onConflict: () => void
}

const tell = ({ outcome, reason, backup, plan }: ConfigSaved): void => {
  const kept = backup === undefined ? '' : ` The text before is in ${backup}.`
  if (outcome === 'rejected')
    return toast(`Saved, but not applied: ${reason ?? ''} The previous configuration stays in use.`, { kind: 'error' })
  if (outcome === 'written') return toast(`Saved.${kept}`, { kind: 'ok' })
  const needsRestart = plan !== undefined && plan.settings.length > 0
  const applied = plan && planSize(plan) > 0 ? 'Saved and applied.' : 'Saved.'
  toast(`${applied}${needsRestart ? ' Some settings take effect after a restart.' : ''}${kept}`, { kind: 'ok' })
}

/** Shows what the draft changes, in the gateway and in the file, and saves it. */
export const ReviewDialog = ({ onClose, onConflict }: ReviewDialogProps) => {
  const [isSaving, setSaving] = useState(false)
  const [error, setError] = useState<string | undefined>()
  useEffect(() => void checkNow(), [])
  const found = checked.value
  const isReady = found?.plan !== undefined && !isChecking.value && !isSaving

  const run = async (): Promise<void> => {
    if (!isReady) return
    setSaving(true)
    setError(undefined)
    try {
      const saved = await save()
      if (newer.peek()) onConflict()
      else {
        if ('outcome' in saved) tell(saved)
        onClose()
      }
    } catch (reason) {
      setError(messageOf(reason))
    } finally {
      setSaving(false)
    }
  }
  useShortcuts('Review', [{ keys: 'mod+s', label: 'Save', isGlobal: true, isOfDialog: true, run: () => void run() }])
  return (
    <Dialog
      title="Review and save"
      size="large"
      onClose={onClose}
      onSubmit={() => void run()}
      footer={
        <>
          <Button onClick={onClose}>Back</Button>
          <Button type="submit" kind="primary" keys="mod+S" disabled={!isReady} isBusy={isSaving}>
            Save
          </Button>
        </>
      }
    >
      {(error ?? checkError.value) !== undefined && (
        <p class="config-error" role="alert">
          {error ?? checkError.value}
        </p>
      )}
      {issues.value.length > 0 && (
        <section>
          <h3>Problems</h3>
          <IssueList issues={issues.value} />
        </section>
      )}
      {found?.plan && (
        <section>
          <h3>What changes</h3>
          <PlanList plan={found.plan} affected={found.affected} />
        </section>
      )}
      {found && found.warnings.length > 0 && (
        <section>
          <h3>Warnings</h3>
          <ul class="config-flaws">
            {found.warnings.map(warning => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </section>
      )}
      {found && (
        <section>
          <h3>{file.value?.file ?? file.value?.suggestedFile}</h3>
          <Difference label="Difference of the text" before={file.value?.text ?? ''} after={found.text} />
        </section>
      )}
    </Dialog>
  )
}
