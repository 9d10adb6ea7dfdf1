import type { TaskDetails, TaskInfo, TaskList } from '../protocol/task-info.ts'
import { Json } from '../wire/json/json.ts'
import { createMediaOutput } from './client/media.ts'
import { renderToolResult } from './client/render.ts'
import { processTerminal, safeLine, styleOf, type Terminal } from './client/terminal.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon, waitUntil } from './daemon-client.ts'
import { durationText } from './status.ts'
import { DATA_FLAG, type Flags, type FlagValues, flagHelp, JSON_FLAG, readLine, table, UsageError } from './usage.ts'

const FLAGS: Flags = { ...DATA_FLAG, ...JSON_FLAG }

const HELP = `Usage: dragoman tasks [list]
       dragoman tasks get [ID]
       dragoman tasks wait [ID]
       dragoman tasks cancel [ID]

Shows the tasks that the running daemon runs, and the results that it keeps. "dragoman call --task" starts one. Without an
ID the newest task is meant; its first characters are enough. Exit code of get and wait: 0, or 1 if the task failed,
was cancelled, or its tool reported an error.

${flagHelp(FLAGS)}
`

const WAIT_MS = 24 * 60 * 60_000 // no task lives longer

/** Lists, shows, follows and cancels tasks of the daemon. */
export const run: Run = async (args, { terminal = processTerminal() }) => {
  const { flags, words } = readLine(args, FLAGS, 2)
  if (flags.help) {
    terminal.output.write(HELP)
    return 0
  }
  const [action = 'list', id] = words
  if (action === 'list') return list(flags, terminal)
  const perform = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
  if (!perform) throw new UsageError(`${JSON.stringify(action)} is not list, get, wait or cancel`)
  return perform(await fullId(flags, id), flags, terminal)
}

type TaskAction = (id: string, flags: FlagValues, terminal: Terminal) => Promise<number>

const ACTIONS: Readonly<Record<string, TaskAction>> = {
  get: async (id, flags, terminal) => show(await read(flags, id), flags, terminal),
  wait: async (id, flags, terminal) => {
    let task = await read(flags, id)
    await waitUntil(WAIT_MS, async () => {
      if (isOver(task)) return true
      await new Promise(resolve => setTimeout(resolve, 500))
      task = await read(flags, id)
      return isOver(task)
    })
    return show(task, flags, terminal)
  },
  cancel: async (id, flags, { output }) => {
    await requestDaemon(await daemonOf(flags), `/admin/tasks/${encodeURIComponent(id)}/cancel`, {})
    output.write(`${id} ${(await read(flags, id)).status}\n`)
    return 0
  },
}

const isOver = ({ status }: TaskInfo): boolean => status !== 'working' && status !== 'input_required'

const readAll = async (flags: FlagValues): Promise<TaskList> =>
  (await (await requestDaemon(await daemonOf(flags), '/admin/tasks')).json()) as TaskList

const read = async (flags: FlagValues, id: string): Promise<TaskDetails> =>
  (await (await requestDaemon(await daemonOf(flags), `/admin/tasks/${encodeURIComponent(id)}`)).json()) as TaskDetails

/** The id that begins like that, or the newest one; a task that is not listed may still be one of another replica. */
const fullId = async (flags: FlagValues, start: string | undefined): Promise<string> => {
  if (start === undefined) {
    const [newest] = (await readAll(flags)).tasks
    if (newest) return newest.id
    throw new UsageError('there are no tasks; "dragoman call SERVER/TOOL --task" starts one')
  }
  const found = (await readAll(flags)).tasks.filter(({ id }) => id.startsWith(start))
  if (found.length > 1)
    throw new UsageError(`${found.length} tasks begin with ${JSON.stringify(start)}: write more of the ID`)
  return found[0]?.id ?? start
}

const list = async (flags: FlagValues, { output }: Terminal): Promise<number> => {
  const { tasks } = await readAll(flags)
  if (flags.json) output.write(`${JSON.stringify(tasks, undefined, 2)}\n`)
  else if (tasks.length === 0) output.write('There are no tasks. "dragoman call SERVER/TOOL --task" starts one.\n')
  else output.write(table([['ID', 'TOOL', 'STATUS', 'AGE', 'USER', 'MESSAGE'], ...tasks.map(rowOf)]))
  return 0
}

const rowOf = ({ id, server, tool, status, createdAt, principal, message }: TaskInfo): string[] => [
  ...[id, safeLine(`${server}/${tool}`), status, durationText(Date.now() - createdAt), principal ?? '-'],
  safeLine(message ?? ''),
]

const show = async (task: TaskDetails, flags: FlagValues, terminal: Terminal): Promise<number> => {
  const { output, error, env } = terminal
  const result = task.result === undefined ? undefined : Json.of(task.result as Record<string, never>)
  const isToolError = result?.get('isError')?.asBoolean() === true
  const hasFailed = isToolError || task.status === 'failed' || task.status === 'cancelled'
  if (flags.json) output.write(`${JSON.stringify(task, undefined, 2)}\n`)
  else if (result) {
    const stream = isToolError ? error : output
    const media = createMediaOutput(terminal, undefined)
    stream.write(await renderToolResult(result, { stream, style: styleOf(stream, env), media }))
  } else
    (hasFailed ? error : output).write(
      `${task.status}${task.message === undefined ? '' : `: ${safeLine(task.message)}`}\n`,
    )
  return hasFailed ? 1 : 0
}
