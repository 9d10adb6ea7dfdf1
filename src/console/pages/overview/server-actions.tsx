import { useEffect, useRef, useState } from 'preact/hooks'
import type { LoginList } from '../../../admin/api/logins.ts'
import type { ServerAction, ServerActionResult } from '../../../admin/api/servers.ts'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { toast } from '../../parts/toast.tsx'
import { hrefTo } from '../../router.ts'
import { session } from '../../session.ts'
import { LoginDialog } from '../connect/login-dialog.tsx'
import { ownerTitle } from '../connect/pane-parts.tsx'
import type { OverviewRow } from './overview-rows.ts'

const DONE: Readonly<Record<ServerAction, string>> = {
  start: 'starts',
  stop: 'is stopped',
  restart: 'restarts',
  retry: 'was tried again',
}

/** What the owner can do with one server. Buttons that have no effect now are left out. */
export const ServerActions = ({ row }: { readonly row: OverviewRow }) => {
  const { name, status } = row
  const [running, setRunning] = useState<ServerAction | undefined>()
  const [asking, setAsking] = useState<'stop' | 'restart' | undefined>()
  const [logins, setLogins] = useState<LoginList | undefined>()
  const title = ownerTitle()
  const isOff = status.state === 'disabled'
  const canRetry = ['down', 'degraded', 'untried', 'connecting'].includes(status.state)

  const buttons = useRef<HTMLDivElement>(null)
  const hasActed = useRef(false)
  // The button that was pressed may be gone, or disabled meanwhile: the keyboard stays among the buttons.
  useEffect(() => {
    if (!hasActed.current || running !== undefined || document.activeElement !== document.body) return
    buttons.current?.querySelector<HTMLButtonElement>('button:not(:disabled)')?.focus()
  }, [running, asking, isOff, canRetry])

  const run = async (action: ServerAction): Promise<void> => {
    hasActed.current = true
    setRunning(action)
    try {
      const { server } = await api.post<ServerActionResult>(`admin/servers/${encodeURIComponent(name)}/${action}`)
      const failed = action === 'retry' && server.state !== 'ready'
      toast(
        failed ? `“${name}” is still ${server.state}` : `“${name}” ${action === 'retry' ? 'is ready' : DONE[action]}`,
        {
          kind: failed ? 'error' : 'ok',
        },
      )
    } catch (error) {
      toast(messageOf(error), { kind: 'error' })
    }
    setRunning(undefined)
    setAsking(undefined)
  }
  const openLogin = (): void =>
    void api
      .get<LoginList>('admin/logins/servers')
      .then(setLogins, (error: unknown) => toast(messageOf(error), { kind: 'error' }))
  const loginServer = logins?.servers.find(server => server.name === name)
  const shared = { title, disabled: title !== undefined || running !== undefined }

  return (
    <div ref={buttons} class="server-actions">
      {status.hasLogin && (
        <Button icon="sign-in" kind="primary" {...shared} onClick={openLogin}>
          Log in
        </Button>
      )}
      {canRetry && (
        <Button icon="clock" {...shared} isBusy={running === 'retry'} onClick={() => void run('retry')}>
          Try again now
        </Button>
      )}
      {isOff ? (
        <Button icon="play" {...shared} isBusy={running === 'start'} onClick={() => void run('start')}>
          Start
        </Button>
      ) : (
        <>
          <Button icon="restart" {...shared} onClick={() => setAsking('restart')}>
            Restart
          </Button>
          <Button icon="stop" {...shared} onClick={() => setAsking('stop')}>
            Stop
          </Button>
        </>
      )}
      {asking !== undefined && (
        <Confirm
          title={asking === 'stop' ? `Stop “${name}”?` : `Restart “${name}”?`}
          action={asking === 'stop' ? 'Stop' : 'Restart'}
          isBusy={running === asking}
          onConfirm={() => void run(asking)}
          onClose={() => setAsking(undefined)}
        >
          {asking === 'stop' ? <StopText /> : <RestartText />}
        </Confirm>
      )}
      {logins && loginServer && (
        <LoginDialog
          server={loginServer}
          principals={logins.principals}
          principal={session.value?.principal ?? 'local'}
          onChanged={() => {}}
          onClose={() => setLogins(undefined)}
        />
      )}
    </div>
  )
}

const StopText = () => (
  <>
    <p>
      Its processes and connections end, and its tools leave the lists of clients. Calls that run may take a few seconds
      to end.
    </p>
    <p>
      It stays stopped until you start it, or until the gateway restarts. To keep it off, disable it under{' '}
      <a class="server-text-link" href={hrefTo('configuration')}>
        Configuration
      </a>
      .
    </p>
  </>
)

const RestartText = () => (
  <p>
    Its processes and connections end, and the gateway connects anew. Calls that run may take a few seconds to end; what
    the server keeps only in memory is lost.
  </p>
)
