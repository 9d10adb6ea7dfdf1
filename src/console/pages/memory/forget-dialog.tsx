import { useState } from 'preact/hooks'
import type { ForgetPlan, ForgetRequest, ForgetResult } from '../../../protocol/memory-views.ts'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { Select } from '../../parts/select.tsx'
import { navigate } from '../../router.ts'
import { ForgetPlanView, ForgetResultView, isEmptyPlan } from './forget-plan.tsx'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { memoryChanged } from './memory-client.ts'

export interface ForgetDialogProps {
  readonly place: MemoryPlace
  readonly preset?: { readonly kind: 'entity'; readonly id: string; readonly name: string } | undefined
  readonly onClose: () => void
}

const KINDS = [
  { value: 'subject', label: 'Everything that names a person or thing' },
  { value: 'group', label: 'A whole group' },
] as const

/** Erases for good, after a preview of everything that goes; then shows the proof. */
export const ForgetDialog = ({ place, preset, onClose }: ForgetDialogProps) => {
  const [kind, setKind] = useState<(typeof KINDS)[number]['value']>('subject')
  const [name, setName] = useState('')
  const [plan, setPlan] = useState<ForgetPlan | undefined>()
  const [result, setResult] = useState<ForgetResult | undefined>()
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<string | undefined>()

  const request = (): ForgetRequest => {
    if (preset) return { kind: 'entity', id: preset.id }
    return kind === 'group' ? { kind, group: name } : { kind, name, group: place.group }
  }
  const query = memoryQuery({ ...place, group: undefined, asOf: undefined })
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    setError(undefined)
    await work().catch((thrown: unknown) => setError(messageOf(thrown)))
    setBusy(false)
  }
  const preview = (): Promise<void> =>
    attempt(async () => setPlan(await api.post<ForgetPlan>(`admin/memory/forget/preview${query}`, request())))
  const forget = (): Promise<void> =>
    attempt(async () => setResult(await api.post<ForgetResult>(`admin/memory/forget${query}`, request())))
  /** What was erased may be what the page shows. */
  const finish = (): void => {
    onClose()
    if (!result) return
    if (place.view === 'entity' || place.view === 'episode')
      navigate(memoryHref({ ...place, view: 'search', id: undefined }))
    memoryChanged()
  }
  const change = (next: string): void => {
    setName(next)
    setPlan(undefined)
  }

  const mayForget = plan !== undefined && !isEmptyPlan(plan)
  return (
    <Dialog
      title={preset ? `Forget “${preset.name}”` : 'Forget'}
      size="medium"
      onClose={finish}
      onSubmit={() => void (result ? finish() : mayForget ? forget() : preview())}
      footer={
        result ? (
          <Button type="submit" kind="primary">
            Close
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            {mayForget ? (
              <Button type="submit" kind="danger" isBusy={isBusy}>
                Erase for good
              </Button>
            ) : (
              <Button type="submit" kind="primary" isBusy={isBusy} disabled={!preset && name.trim() === ''}>
                Preview
              </Button>
            )}
          </>
        )
      }
    >
      {!preset && !result && (
        <div class="memory-pair">
          <Field label="Forget">
            {control => (
              <Select
                {...control}
                value={kind}
                options={KINDS}
                onChange={next => {
                  setKind(next)
                  setPlan(undefined)
                }}
              />
            )}
          </Field>
          <Field label={kind === 'group' ? 'Group' : 'Name'} isRequired>
            {control => (
              <input {...control} value={name} onInput={({ currentTarget }) => change(currentTarget.value)} />
            )}
          </Field>
        </div>
      )}
      {!plan && !result && (
        <p class="quiet">
          Forgetting erases every byte: texts, facts, summaries, index and log. It cannot reach backups and exports.
          First see what goes.
        </p>
      )}
      {error !== undefined && (
        <p class="memory-error" role="alert">
          {error}
        </p>
      )}
      {plan && !result && <ForgetPlanView plan={plan} />}
      {result && <ForgetResultView result={result} />}
    </Dialog>
  )
}
