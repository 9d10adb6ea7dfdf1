import { useState } from 'preact/hooks'
import type { FactChange } from '../../../protocol/memory-operations.ts'
import type { FactView } from '../../../protocol/memory-views.ts'
import { api } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Confirm, Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { toast } from '../../parts/toast.tsx'
import { type MemoryPlace, memoryQuery } from './memory-address.ts'
import { useMemoryAction } from './memory-client.ts'
import { dateValue } from './memory-dates.ts'

export interface FactDialogProps {
  readonly fact: FactView
  readonly place: MemoryPlace
  readonly onClose: () => void
}

const pathOf = ({ fact, place }: FactDialogProps): string =>
  `admin/memory/facts/${encodeURIComponent(fact.id)}${memoryQuery({ ...place, group: undefined, asOf: undefined })}`

const footerOf = (action: string, isBusy: boolean, onClose: () => void) => (
  <>
    <Button onClick={onClose}>Cancel</Button>
    <Button type="submit" kind="primary" isBusy={isBusy}>
      {action}
    </Button>
  </>
)

/** A date that has not changed is not sent: it may be more exact than a day. */
const changedDate = (before: number | undefined, after: string): string | null | undefined =>
  after === dateValue(before) ? undefined : after || null

/** Corrects the words, the relation or the dates of a fact. */
export const EditFact = (props: FactDialogProps) => {
  const { fact, onClose } = props
  const { isBusy, error, run } = useMemoryAction()
  const [text, setText] = useState(fact.text)
  const [relation, setRelation] = useState(fact.relation)
  const [from, setFrom] = useState(dateValue(fact.validFrom))
  const [until, setUntil] = useState(dateValue(fact.validUntil))
  const save = async (): Promise<void> => {
    const change: FactChange = {
      text: text === fact.text ? undefined : text,
      relation: relation === fact.relation ? undefined : relation,
      validFrom: changedDate(fact.validFrom, from),
      validUntil: changedDate(fact.validUntil, until),
    }
    await api.patch(pathOf(props), change)
    toast('The fact was corrected', { kind: 'ok' })
    onClose()
  }
  return (
    <Dialog
      title="Correct the fact"
      size="medium"
      onClose={onClose}
      onSubmit={() => void run(save)}
      footer={footerOf('Save', isBusy, onClose)}
    >
      <Field label="Fact" isRequired error={error}>
        {control => (
          <textarea {...control} rows={3} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
        )}
      </Field>
      <Field label="Relation" hint="For example WORKS_AT">
        {control => (
          <input {...control} value={relation} onInput={({ currentTarget }) => setRelation(currentTarget.value)} />
        )}
      </Field>
      <div class="memory-pair">
        <Field label="True from" hint="Empty: since ever">
          {control => (
            <input
              {...control}
              type="date"
              value={from}
              onInput={({ currentTarget }) => setFrom(currentTarget.value)}
            />
          )}
        </Field>
        <Field label="True until" hint="Empty: it still is">
          {control => (
            <input
              {...control}
              type="date"
              value={until}
              onInput={({ currentTarget }) => setUntil(currentTarget.value)}
            />
          )}
        </Field>
      </div>
    </Dialog>
  )
}

/** Says since when a fact is no longer true. It stays in the memory, as what was true once. */
export const EndFact = (props: FactDialogProps) => {
  const { fact, onClose } = props
  const { isBusy, error, run } = useMemoryAction()
  const [until, setUntil] = useState(dateValue(fact.validUntil ?? Date.now()))
  const save = async (): Promise<void> => {
    await api.patch(pathOf(props), { validUntil: until || null } satisfies FactChange)
    toast(`The fact ends on ${until}`, { kind: 'ok' })
    onClose()
  }
  return (
    <Dialog
      title="End the fact"
      onClose={onClose}
      onSubmit={() => void run(save)}
      footer={footerOf('End', isBusy, onClose)}
    >
      <p class="memory-quote">{fact.text}</p>
      <Field
        label="No longer true from"
        isRequired
        error={error}
        hint="It stays in the memory as what was true before."
      >
        {control => (
          <input
            {...control}
            type="date"
            required
            value={until}
            onInput={({ currentTarget }) => setUntil(currentTarget.value)}
          />
        )}
      </Field>
    </Dialog>
  )
}

export const DeleteFact = (props: FactDialogProps) => {
  const { fact, onClose } = props
  const { isBusy, error, run } = useMemoryAction()
  const remove = async (): Promise<void> => {
    await api.delete(pathOf(props))
    toast('The fact was deleted', { kind: 'ok' })
    onClose()
  }
  return (
    <Confirm
      title="Delete the fact?"
      action="Delete"
      isDanger
      isBusy={isBusy}
      onConfirm={() => void run(remove)}
      onClose={onClose}
    >
      <p class="memory-quote">{fact.text}</p>
      <p>The text that states it stays. If it was true once, end it instead.</p>
      {error !== undefined && <p class="memory-error">{error}</p>}
    </Confirm>
  )
}
