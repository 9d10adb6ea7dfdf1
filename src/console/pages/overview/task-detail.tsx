import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { isFinal, type TaskDetails } from '../../../protocol/task-info.ts'
import { api, messageOf } from '../../api.ts'
import { isObject } from '../../mcp/messages.ts'
import { StateDot } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { Empty } from '../../parts/empty.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { SkeletonRows } from '../../parts/page-frame.tsx'
import { Time } from '../../parts/quantities.tsx'
import { toast } from '../../parts/toast.tsx'
import { hrefTo } from '../../router.ts'
import { Facts, ownerTitle, PaneSection } from '../connect/pane-parts.tsx'
import type { ResultViewProps } from '../explore/result/result-view.tsx'
import { useFollowed } from './live-tasks.ts'
import { TASK_STATES } from './task-table.tsx'

/** One task: where it is, what it asks, and its result. */
export const TaskDetail = ({ id }: { readonly id: string }) => {
  const path = `admin/tasks/${encodeURIComponent(id)}`
  const { value: task, error, reload } = useFollowed<TaskDetails>(path, ({ status }) => !isFinal(status))
  const [isCancelling, setCancelling] = useState(false)
  if (error !== undefined && !task)
    return <Empty icon="warning" title="This task cannot be shown" text={`${error}. It may have expired.`} />
  if (!task) return <SkeletonRows />
  const cancel = async (): Promise<void> => {
    setCancelling(true)
    await api.post(`${path}/cancel`, {}).catch((failure: unknown) => toast(messageOf(failure), { kind: 'error' }))
    setCancelling(false)
    reload()
  }
  return (
    <div class="server-pane">
      <div class="server-actions">
        {!isFinal(task.status) && (
          <Button
            icon="stop"
            title={ownerTitle()}
            disabled={ownerTitle() !== undefined}
            isBusy={isCancelling}
            onClick={() => void cancel()}
          >
            Cancel task
          </Button>
        )}
        <a class="button button-plain" href={hrefTo('explore', [task.server, 'tools', task.tool])}>
          Open the tool
        </a>
      </div>
      {task.status === 'failed' && task.message !== undefined && <Callout kind="error">{task.message}</Callout>}
      <Facts
        rows={[
          ['State', <StateDot key="state" {...TASK_STATES[task.status]} />],
          ['Message', task.status === 'failed' ? undefined : task.message],
          ['Server', task.server],
          ['Workspace', task.workspace],
          ['User', task.principal ?? 'anonymous'],
          ['Started', <Time key="started" at={task.createdAt} />],
          ['Changed', <Time key="changed" at={task.updatedAt} />],
          ['Kept until', <Time key="expires" at={task.expires} />],
          ['Id', <code key="id">{task.id}</code>],
        ]}
      />
      {task.inputRequests !== undefined && (
        <PaneSection title="Questions to its client">
          <JsonTree value={task.inputRequests} openDepth={3} />
        </PaneSection>
      )}
      {task.error !== undefined && (
        <PaneSection title="Error">
          <JsonTree value={task.error} openDepth={3} />
        </PaneSection>
      )}
      {isObject(task.result) && (
        <PaneSection title="Result">
          <TaskResult target={task.server} result={task.result} />
        </PaneSection>
      )}
    </div>
  )
}

/** The view of results is code of Explore, loaded when there is one to show. */
const TaskResult = (props: ResultViewProps) => {
  const [View, setView] = useState<FunctionComponent<ResultViewProps> | undefined>()
  useEffect(() => {
    void import('../explore/result/result-view.tsx').then(({ ResultView }) => setView(() => ResultView))
  }, [])
  return View ? <View {...props} /> : <SkeletonRows count={1} />
}
