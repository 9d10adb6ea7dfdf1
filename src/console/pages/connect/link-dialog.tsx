import { useEffect, useState } from 'preact/hooks'
import type {
  ClientApplied,
  ClientApply,
  ClientChange,
  ClientInfo,
  ClientList,
  ClientPreview,
} from '../../../admin/api/clients.ts'
import { ApiError, api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { SkeletonRows } from '../../parts/page-frame.tsx'
import { linkCommand } from './client-rows.ts'
import { FileDifference } from './file-difference.tsx'
import { Facts, PathText } from './pane-parts.tsx'

export interface LinkDialogProps {
  readonly client: ClientInfo
  readonly list: ClientList
  readonly change: ClientChange
  readonly onChanged: () => void // the file was written
  readonly onUndo: (name: string) => void
  readonly onClose: () => void
}

interface PreviewState {
  readonly preview?: ClientPreview
  readonly error?: string
  readonly isTaken?: boolean // another server has the name
}

const TYPING_MS = 250

/** Shows what linking or unlinking changes in the file of a client, and does it. */
export const LinkDialog = ({ client, list, change: given, onChanged, onUndo, onClose }: LinkDialogProps) => {
  const isLink = given.action === 'link'
  const [name, setName] = useState(given.name ?? client.entry)
  const [isForced, setForced] = useState(false)
  const [isSure, setSure] = useState(list.isHere)
  const [{ preview, error, isTaken }, setPreview] = useState<PreviewState>({})
  const [round, setRound] = useState(0)
  const [isBusy, setBusy] = useState(false)
  const [done, setDone] = useState<ClientApplied | undefined>()
  const change: ClientChange = { ...given, name, isForced }
  const path = `admin/clients/${client.id}`

  useEffect(() => {
    const abort = new AbortController()
    const timer = setTimeout(
      () =>
        api.post<ClientPreview>(`${path}/preview`, change, { signal: abort.signal }).then(
          shown => setPreview({ preview: shown }),
          (failure: unknown) => {
            if (!abort.signal.aborted) setPreview({ error: messageOf(failure), isTaken: kindOf(failure) === 'other' })
          },
        ),
      name === (given.name ?? client.entry) ? 0 : TYPING_MS,
    )
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [name, isForced, round])

  const apply = async (): Promise<void> => {
    if (!preview || !isSure) return
    setBusy(true)
    const body: ClientApply = { ...change, stamp: preview.stamp, ...(!list.isHere && { machine: list.machine }) }
    try {
      setDone(await api.post<ClientApplied>(`${path}/apply`, body))
      onChanged()
    } catch (failure) {
      if (kindOf(failure) === 'changed') setRound(round + 1)
      setPreview({ error: messageOf(failure) })
    }
    setBusy(false)
  }

  const title = isLink ? `Link ${client.title}` : `Unlink ${client.title}`
  if (done)
    return (
      <Dialog
        title={isLink ? `${client.title} is linked` : `${client.title} is unlinked`}
        onClose={onClose}
        footer={
          <>
            {isLink && <Button onClick={() => onUndo(done.name)}>Undo…</Button>}
            <Button kind="primary" onClick={onClose}>
              Close
            </Button>
          </>
        }
      >
        <p>Restart {client.title} if it runs: it reads its file when it starts.</p>
        <Facts
          rows={[
            ['File', <PathText path={done.file} />],
            ['Backup', done.backup === undefined ? 'None: there was no file' : <PathText path={done.backup} />],
          ]}
        />
      </Dialog>
    )
  const canApply =
    preview !== undefined && isSure && (preview.kind === 'new' || preview.kind === 'replaces' || isForced)
  return (
    <Dialog
      title={title}
      size="medium"
      onClose={onClose}
      onSubmit={() => void apply()}
      footer={
        <>
          <span class="connect-dialog-note quiet">
            or{' '}
            <code>{linkCommand(given.action, client.id, given.workspace ?? 'default', customName(name, client))}</code>
          </span>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={isLink ? 'primary' : 'danger'} disabled={!canApply} isBusy={isBusy}>
            {isLink ? 'Link' : 'Unlink'}
          </Button>
        </>
      }
    >
      {isLink && (
        <Field label="Name of the entry" hint="As the client shows it.">
          {control => (
            <input
              {...control}
              value={name}
              maxLength={64}
              spellcheck={false}
              autocomplete="off"
              onInput={({ currentTarget }) => {
                setForced(false)
                setName(currentTarget.value)
              }}
            />
          )}
        </Field>
      )}
      {error !== undefined && (
        <Callout kind="error">
          <p>{error}</p>
          {isTaken && (
            <button type="button" class="link" onClick={() => setForced(true)}>
              {isLink ? 'Replace that server' : 'Remove it nevertheless'}
            </button>
          )}
        </Callout>
      )}
      {!preview && error === undefined && <SkeletonRows count={5} />}
      {preview && <PreviewText preview={preview} client={client} isLink={isLink} />}
      {!list.isHere && (
        <Callout kind="warn">
          <p>
            You are not on the machine of the gateway. This changes the file of the user <b>{list.user}</b> on{' '}
            <b>{list.machine}</b>.
          </p>
          <label class="connect-check">
            <input type="checkbox" checked={isSure} onChange={({ currentTarget }) => setSure(currentTarget.checked)} />
            Change that file
          </label>
        </Callout>
      )}
    </Dialog>
  )
}

interface PreviewTextProps {
  readonly preview: ClientPreview
  readonly client: ClientInfo
  readonly isLink: boolean
}

const PreviewText = ({ preview, client, isLink }: PreviewTextProps) => {
  const { file, exists, kind, lines } = preview
  if (kind === 'same') return <Callout>{client.title} is linked already, in exactly this way.</Callout>
  if (kind === 'missing') return <Callout>There is nothing to remove: {file} has no such entry.</Callout>
  return (
    <>
      <Facts
        rows={[
          ['File', <PathText path={file} />],
          [
            'Backup',
            exists ? `${file.replace(/^.*[\\/]/, '')}.<time>.bak in the same folder` : 'None: the file is new',
          ],
          ['Undo', isLink ? 'Unlink removes the entry again' : 'Link adds the entry again'],
        ]}
      />
      <FileDifference lines={lines} label="Changes of the file" />
      <p class="quiet">Everything else in the file stays. Texts of other entries and tokens are not shown here.</p>
    </>
  )
}

const customName = (name: string, { entry }: ClientInfo): string | undefined => (name === entry ? undefined : name)

const kindOf = (failure: unknown): unknown =>
  failure instanceof ApiError && typeof failure.details === 'object' && failure.details !== null
    ? (failure.details as { readonly kind?: unknown }).kind
    : undefined
