import { useState } from 'preact/hooks'
import type { NewMemory } from '../../../protocol/memory-operations.ts'
import type { EpisodeDetails } from '../../../protocol/memory-views.ts'
import { api } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { plural } from '../../parts/format.ts'
import { Select } from '../../parts/select.tsx'
import { toast } from '../../parts/toast.tsx'
import { navigate } from '../../router.ts'
import { type MemoryPlace, memoryHref, memoryQuery } from './memory-address.ts'
import { useMemoryAction } from './memory-client.ts'

export interface AddMemoryProps {
  readonly place: MemoryPlace
  readonly defaultGroup: string
  readonly onClose: () => void
}

const SOURCES = [
  { value: 'text', label: 'Text' },
  { value: 'message', label: 'Messages (“name: text” lines)' },
  { value: 'json', label: 'JSON' },
] as const

/** Adds a memory by hand. */
export const AddMemory = ({ place, defaultGroup, onClose }: AddMemoryProps) => {
  const { isBusy, error, run } = useMemoryAction()
  const [text, setText] = useState('')
  const [name, setName] = useState('')
  const [source, setSource] = useState<(typeof SOURCES)[number]['value']>('text')
  const [at, setAt] = useState('')
  const [group, setGroup] = useState(place.group ?? defaultGroup)
  const save = async (): Promise<void> => {
    const memory: NewMemory = {
      text,
      name: name || undefined,
      source,
      at: at === '' ? undefined : new Date(at).toISOString(),
      group: group.trim() || undefined,
    }
    const path = `admin/memory/episodes${memoryQuery({ ...place, group: undefined, asOf: undefined })}`
    const { episode, entities, facts } = await api.post<EpisodeDetails>(path, memory)
    const counts = `${plural(entities.length, 'entity', 'entities')} and ${plural(facts.length, 'fact')}`
    toast(`Stored “${episode.name}” with ${counts}`, { kind: 'ok' })
    onClose()
    navigate(memoryHref({ ...place, view: 'episode', id: episode.id, query: '', group: undefined, asOf: undefined }))
  }
  return (
    <Dialog
      title="Add a memory"
      size="medium"
      onClose={onClose}
      onSubmit={() => void run(save)}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={isBusy} disabled={text.trim() === ''}>
            Add
          </Button>
        </>
      }
    >
      <Field
        label="Text"
        isRequired
        error={error}
        hint="Whole sentences with names and dates: “Ann parked on Elm Street in May 2025.”"
      >
        {control => (
          <textarea {...control} rows={6} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
        )}
      </Field>
      <div class="memory-pair">
        <Field label="Title" hint="Empty: the first words">
          {control => <input {...control} value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />}
        </Field>
        <Field label="Source">
          {control => <Select {...control} value={source} options={SOURCES} onChange={setSource} />}
        </Field>
        <Field label="When it happened" hint="Empty: now">
          {control => (
            <input
              {...control}
              type="datetime-local"
              value={at}
              onInput={({ currentTarget }) => setAt(currentTarget.value)}
            />
          )}
        </Field>
        <Field label="Group" hint="Letters, digits, dashes and underscores">
          {control => (
            <input {...control} value={group} onInput={({ currentTarget }) => setGroup(currentTarget.value)} />
          )}
        </Field>
      </div>
    </Dialog>
  )
}
