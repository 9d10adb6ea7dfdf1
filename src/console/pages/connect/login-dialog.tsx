import { useEffect, useState } from 'preact/hooks'
import type { BegunLogin, LoginList, LoginServerInfo } from '../../../admin/api/logins.ts'
import { api, messageOf } from '../../api.ts'
import { onFeed } from '../../events.ts'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { Select } from '../../parts/select.tsx'
import { toast } from '../../parts/toast.tsx'
import { principalText } from './login-rows.ts'

export interface LoginDialogProps {
  readonly server: LoginServerInfo
  readonly principals: LoginList['principals']
  readonly principal: string
  readonly onChanged: () => void
  readonly onClose: () => void
}

const POLL_MS = 5000 // where the events do not arrive

const sinceOf = ({ servers }: LoginList, name: string, principal: string): number | undefined => {
  const server = servers.find(each => each.name === name)
  return server?.logins.find(login => server.isShared || login.principal === principal)?.since
}

/** Logs a principal in at a server: in a new tab, by a link to send, or with the address at which a browser ended. */
export const LoginDialog = ({ server, principals, principal: given, onChanged, onClose }: LoginDialogProps) => {
  const { name, isShared } = server
  const [principal, setPrincipal] = useState(given)
  const [begun, setBegun] = useState<BegunLogin | undefined>()
  const [isPasting, setPasting] = useState(false)
  const [pasteUrl, setPasteUrl] = useState<string | undefined>()
  const [address, setAddress] = useState('')
  const [error, setError] = useState<string | undefined>()
  const [isBusy, setBusy] = useState(false)

  const finish = (): void => {
    toast(`Logged in to ${name}`, { kind: 'ok' })
    onChanged()
    onClose()
  }

  // The browser ends the login at the gateway, not here: an event tells, or the next look at the list.
  useEffect(() => {
    if (!begun) return
    const before = sinceOf({ servers: [server], principals }, name, principal)
    let isOver = false
    const look = async (): Promise<void> => {
      const list = await api.get<LoginList>('admin/logins/servers').catch(() => undefined)
      const since = list && sinceOf(list, name, principal)
      if (isOver || since === undefined || since === before) return
      isOver = true
      finish()
    }
    const timer = setInterval(() => void look(), POLL_MS)
    const stop = onFeed('logins', () => void look())
    return () => {
      isOver = true
      clearInterval(timer)
      stop()
    }
  }, [begun])

  const run = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    setError(undefined)
    await work().catch((failure: unknown) => setError(messageOf(failure)))
    setBusy(false)
  }
  const begin = (): Promise<BegunLogin> => api.post<BegunLogin>('admin/logins/begin', { server: name, principal })

  /** The tab is opened with the click: browsers block those that come later. */
  const openTab = (): void => {
    const tab = window.open('about:blank', '_blank')
    void run(async () => {
      try {
        const link = await begin()
        setBegun(link)
        if (tab) tab.location.href = link.url
      } catch (failure) {
        tab?.close()
        throw failure
      }
    })
  }
  const showLink = (): void => void run(async () => setBegun(await begin()))
  const showPaste = (): void =>
    void run(async () => {
      setPasting(true)
      const { id } = begun ?? (await begin())
      setPasteUrl((await api.post<{ readonly url: string }>('admin/logins/open', { id, principal })).url)
    })
  const submitPaste = (): void =>
    void run(async () => {
      if (address.trim() === '') throw new Error('Paste the address first: it begins with http and has “code=” in it')
      await api.post('admin/logins/finish', { address: address.trim(), principal })
      finish()
    })

  return (
    <Dialog
      title={`Log in to ${name}`}
      size="medium"
      onClose={onClose}
      onSubmit={isPasting ? submitPaste : openTab}
      footer={
        <>
          <Button onClick={onClose}>{begun ? 'Close' : 'Cancel'}</Button>
          <Button type="submit" kind="primary" icon={isPasting ? undefined : 'external'} isBusy={isBusy}>
            {isPasting ? 'Finish' : 'Open the login page'}
          </Button>
        </>
      }
    >
      {isShared ? (
        <p>One login serves all callers of this gateway.</p>
      ) : (
        <Field label="For" hint="Each principal logs in with an account of their own.">
          {control => (
            <Select
              {...control}
              value={principal}
              disabled={begun !== undefined || isPasting}
              options={principals.map(each => ({ value: each.principal, label: principalText(each) }))}
              onChange={setPrincipal}
            />
          )}
        </Field>
      )}
      {error !== undefined && <Callout kind="error">{error}</Callout>}
      {begun && !isPasting && (
        <Callout>
          <p>Waiting for the login. This dialog closes when it is complete; the link is valid for ten minutes.</p>
          <span class="connect-path">
            <a class="truncate mono" href={begun.url} target="_blank" rel="noreferrer">
              {begun.url}
            </a>
            <CopyButton text={begun.url} label="Copy the link" />
          </span>
        </Callout>
      )}
      {isPasting && pasteUrl !== undefined && (
        <>
          <p>1. Open this address in any browser, and log in.</p>
          <span class="connect-path connect-boxed">
            <code class="truncate">{pasteUrl}</code>
            <CopyButton text={pasteUrl} label="Copy the address" />
          </span>
          <Field label="2. Paste the address at which the browser ends" hint="The page itself may fail to load.">
            {control => (
              <input
                {...control}
                value={address}
                spellcheck={false}
                autocomplete="off"
                onInput={({ currentTarget }) => setAddress(currentTarget.value)}
              />
            )}
          </Field>
        </>
      )}
      {!isPasting && (
        <p class="quiet">
          {!begun && (
            <>
              For another person,{' '}
              <button type="button" class="link" onClick={showLink}>
                show a link to send
              </button>
              .{' '}
            </>
          )}
          If the browser cannot reach the gateway,{' '}
          <button type="button" class="link" onClick={showPaste}>
            paste the final address
          </button>
          .
        </p>
      )}
    </Dialog>
  )
}
