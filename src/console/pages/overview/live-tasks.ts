import { useEffect } from 'preact/hooks'
import type { TaskInfo, TaskList } from '../../../protocol/task-info.ts'
import { useAnswer } from '../connect/use-answer.ts'

const FOLLOW_MS = 1000 // a task that works tells of its steps in no event

/** Reads a path of the admin API again and again while that is true of its answer. */
export const useFollowed = <T>(path: string | undefined, isMoving: (value: T) => boolean) => {
  const answer = useAnswer<T>(path, 'status')
  const { value, reload } = answer
  const moves = value !== undefined && isMoving(value)
  useEffect(() => {
    if (!moves) return
    const timer = setInterval(reload, FOLLOW_MS)
    return () => clearInterval(timer)
  }, [moves, reload])
  return answer
}

/** The tasks that this user may see. */
export const useLiveTasks = (isShown: boolean) =>
  useFollowed<TaskList>(isShown ? 'admin/tasks' : undefined, ({ running }) => running > 0)

/** The tasks of one workspace whose tool, server, user or message has the text. */
export const filterTasks = (
  tasks: readonly TaskInfo[],
  { text, workspace }: { readonly text: string; readonly workspace: string | undefined },
): readonly TaskInfo[] => {
  const wanted = text.trim().toLowerCase()
  return tasks.filter(
    ({ tool, server, principal = '', message = '', status, workspace: own }) =>
      (workspace === undefined || own === workspace) &&
      [tool, server, principal, message, status].some(part => part.toLowerCase().includes(wanted)),
  )
}
