import { useState } from 'preact/hooks'
import type { EntityChange } from '../../../protocol/memory-operations.ts'
import type { EntityDetails } from '../../../protocol/memory-views.ts'
import { api } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { TextInputField } from '../../parts/field.tsx'
import { toast } from '../../parts/toast.tsx'
import { type MemoryPlace, memoryQuery } from './memory-address.ts'
import { useMemoryAction } from './memory-client.ts'

export interface EditEntityProps {
  readonly details: EntityDetails
  readonly place: MemoryPlace
  readonly onClose: () => void
}

const labelsIn = (text: string): readonly string[] => [
  ...new Set(
    text
      .split(',')
      .map(label => label.trim())
      .filter(label => label !== ''),
  ),
]

/** Changes the name, the summary and the labels of an entity. */
export const EditEntity = ({ details, place, onClose }: EditEntityProps) => {
  const { entity } = details
  const { isBusy, error, run } = useMemoryAction()
  const [name, setName] = useState(entity.name)
  const [summary, setSummary] = useState(entity.summary)
  const [labels, setLabels] = useState(entity.labels.join(', '))
  const save = async (): Promise<void> => {
    const query = memoryQuery({ ...place, group: undefined, asOf: undefined })
    const change: EntityChange = {
      name: name === entity.name ? undefined : name,
      summary: summary === entity.summary ? undefined : summary,
      labels: labelsIn(labels),
    }
    await api.patch(`admin/memory/entities/${encodeURIComponent(entity.id)}${query}`, change)
    toast(`Saved “${name.trim()}”`, { kind: 'ok' })
    onClose()
  }
  return (
    <Dialog
      title={`Edit ${entity.name}`}
      size="medium"
      onClose={onClose}
      onSubmit={() => void run(save)}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={isBusy}>
            Save
          </Button>
        </>
      }
    >
      <TextInputField
        label="Name"
        isRequired
        error={error}
        hint="The old name stays an alias: texts that use it still mean this entity."
        value={name}
        onValue={setName}
      />
      <TextInputField
        label="Labels"
        hint="What it is, separated by commas: Person, Customer"
        value={labels}
        onValue={setLabels}
      />
      <TextInputField
        label="Summary"
        hint="Agents get it with the entity."
        rows={5}
        value={summary}
        onValue={setSummary}
      />
    </Dialog>
  )
}
