import { useEffect, useState } from 'preact/hooks'
import type { PastedServer, PastedServers } from '../../../admin/api/config.ts'
import { api, messageOf } from '../../api.ts'
import { valueAt } from '../../form/form-value.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { plural } from '../../parts/format.ts'
import { withValue } from './edits.ts'
import { pathOfNewServer, targetOf } from './entries.ts'
import { change, draft } from './store.ts'

interface AddServerProps {
  readonly onAdded: (name: string) => void
  readonly onClose: () => void
}

const READ_MS = 150

/** Adds servers from what people copy: a URL, a command, or the configuration of another client. */
export const AddServer = ({ onAdded, onClose }: AddServerProps) => {
  const [text, setText] = useState('')
  const [reading, setReading] = useState<{ readonly of: string; readonly found: PastedServers } | undefined>()
  const [typedNames, setTypedNames] = useState<Readonly<Record<number, string>>>({}) // by the place of the server
  const [isAdding, setAdding] = useState(false) // as soon as the text is read as it is now
  useEffect(() => {
    const abort = new AbortController()
    const timer = setTimeout(() => {
      if (text.trim() === '') return setReading(undefined)
      api
        .post<PastedServers>('admin/config/paste', { text }, { signal: abort.signal })
        .catch((error: unknown): PastedServers => ({ kind: 'nothing', servers: [], reason: messageOf(error) }))
        .then(found => {
          if (!abort.signal.aborted) setReading({ of: text, found })
        })
    }, READ_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [text])

  const servers = reading?.found.servers ?? []
  const names = servers.map(({ name }, at) => typedNames[at] ?? name)
  const isTaken = (name: string, at: number): boolean =>
    names.indexOf(name) !== at || valueAt(draft.value.value, pathOfNewServer(draft.value.value, name)) !== undefined
  const errorOf = (name: string, at: number): string | undefined => {
    if (name.trim() === '') return 'A server needs a name.'
    return isTaken(name, at) ? `"${name}" exists already; choose another name.` : undefined
  }
  const isReady = servers.length > 0 && names.every((name, at) => errorOf(name, at) === undefined)
  const isCurrent = reading?.of === text
  const add = (): void => {
    setAdding(!isCurrent)
    if (!isReady || !isCurrent) return
    change(now =>
      servers.reduce((next, { entry }, at) => {
        const value = withValue(next.value, pathOfNewServer(next.value, names[at] ?? ''), entry)
        return { root: next.root, renames: next.renames, value }
      }, now),
    )
    onClose()
    onAdded(names[0] ?? '')
  }
  useEffect(() => {
    if (isAdding && isCurrent) add()
  })
  return (
    <Dialog
      title="Add server"
      size="medium"
      onClose={onClose}
      onSubmit={add}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!isReady}>
            {servers.length > 1 ? `Add ${servers.length} servers` : 'Add'}
          </Button>
        </>
      }
    >
      <Field
        label="URL, command or snippet"
        hint="Paste what the page of the server shows: https://…, npx -y …, claude mcp add …, {&quot;mcpServers&quot;: …}, or an install link. Nothing is saved yet."
        error={text.trim() === '' ? undefined : reading?.found.reason || undefined}
      >
        {control => (
          <textarea
            {...control}
            class="mono"
            rows={4}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => {
              setText(currentTarget.value)
              setAdding(false)
            }}
          />
        )}
      </Field>
      {servers.map((server, at) => (
        <FoundServer
          key={at}
          server={server}
          name={names[at] ?? ''}
          error={errorOf(names[at] ?? '', at)}
          onName={name => setTypedNames({ ...typedNames, [at]: name })}
        />
      ))}
      {servers.length > 1 && <p class="quiet">{plural(servers.length, 'server')} found.</p>}
    </Dialog>
  )
}

interface FoundServerProps {
  readonly server: PastedServer
  readonly name: string
  readonly error: string | undefined
  readonly onName: (name: string) => void
}

const FoundServer = ({ server: { entry, notes }, name, error, onName }: FoundServerProps) => (
  <section class="config-found" aria-label={`Server ${name}`}>
    <Field label="Name" error={error}>
      {control => (
        <input
          {...control}
          spellcheck={false}
          value={name}
          onInput={({ currentTarget }) => onName(currentTarget.value)}
        />
      )}
    </Field>
    <p class="mono config-target">{targetOf(entry)}</p>
    <p class="quiet">{Object.keys(entry).join(', ')}</p>
    {notes.map(note => (
      <p key={note} class="config-note">
        {note}
      </p>
    ))}
  </section>
)
