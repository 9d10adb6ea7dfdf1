import { useState } from 'preact/hooks'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { toast } from '../../parts/toast.tsx'
import { hrefTo, navigate } from '../../router.ts'
import { ownerTitle } from '../connect/pane-parts.tsx'

interface TaskButtonProps {
  readonly target: string
  readonly tool: string
  readonly canStart: boolean
  readonly args: () => Readonly<Record<string, unknown>>
}

/** Starts the call as a task of the gateway, which goes on when the page is closed. */
export const TaskButton = ({ target, tool, canStart, args }: TaskButtonProps) => {
  const [isBusy, setBusy] = useState(false)
  const start = async (): Promise<void> => {
    setBusy(true)
    try {
      const { id } = await api.post<{ id: string }>('admin/tasks', { workspace: target, tool, arguments: args() })
      const run = (): void => navigate(hrefTo('overview', [id], { tab: 'tasks' }))
      toast(`${tool} runs as a task`, { kind: 'ok', action: { label: 'Show the task', run } })
    } catch (error) {
      toast(messageOf(error), { kind: 'error' })
    }
    setBusy(false)
  }
  const title = ownerTitle() ?? 'It goes on when this page is closed; its result is under Overview, Tasks'
  return (
    <Button
      icon="clock"
      title={title}
      disabled={!canStart || ownerTitle() !== undefined}
      isBusy={isBusy}
      onClick={() => void start()}
    >
      Run as task
    </Button>
  )
}
