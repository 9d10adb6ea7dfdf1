import { ensureDataDirectory, ensureReadable } from '../../config/data-dir.ts'
import type { CommandContext, Run } from '../command.ts'
import {
  actionHelp,
  commandHelp,
  type Flags,
  findAction,
  JSON_FLAG,
  print,
  printError,
  readLine,
  UsageError,
} from '../usage.ts'
import { type Action, type ActionRequest, limitOf } from './action.ts'
import { READ_ACTIONS } from './read.ts'
import { groupsOf, ownerText, readTarget, TARGET_FLAGS } from './target.ts'
import { TRANSFER_ACTIONS } from './transfer.ts'
import { WRITE_ACTIONS } from './write.ts'

const ACTIONS: Readonly<Record<string, Action>> = { ...WRITE_ACTIONS, ...READ_ACTIONS, ...TRANSFER_ACTIONS }

const COMMON: Flags = { ...TARGET_FLAGS, ...JSON_FLAG }

const { group: _group, ...UNGROUPED } = COMMON

const ACTION_FLAGS: Flags = Object.assign({}, ...Object.values(ACTIONS).map(({ flags }) => flags))

const ABOUT = 'Works on the memory of a workspace directly, whether a gateway runs or not.'

/** Runs `dragoman memory <action>`. */
export const run: Run = async (args, context) => {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h')
    return print(commandHelp('memory', ABOUT, ACTIONS, COMMON))
  const action = findAction(ACTIONS, name)
  // Flags of all actions are read, so that the error can name the action that a wrong one belongs to.
  const { flags, words } = readLine(rest, { ...ACTION_FLAGS, ...COMMON })
  const common = action.isUngrouped ? UNGROUPED : COMMON
  if (flags.help) return print(actionHelp('memory', action, common))
  const foreign = Object.keys(flags).find(flag => !(flag in action.flags) && !(flag in common))
  if (foreign !== undefined) throw new UsageError(`--${foreign} does not go with "${name}"`)
  const [least, most] = action.words
  if (words.length < least) throw new UsageError(`expected dragoman memory ${action.usage}`)
  if (words.length > most) throw new UsageError(`Unexpected argument '${words[most]}'`)
  const target = await readTarget(flags)
  return perform(action, { words, flags, groups: groupsOf(flags), limit: limitOf(flags), target }, context)
}

const perform = async (
  action: Action,
  request: Omit<ActionRequest, 'admin'>,
  { openMemory }: CommandContext,
): Promise<number> => {
  const { target } = request
  if (target.database === undefined) await (action.creates ? ensureDataDirectory : ensureReadable)(target.folder)
  const admin = await openMemory(target)
  try {
    const tenants = action.creates ? [target.tenant] : await admin.tenants()
    if (!tenants.includes(target.tenant)) return printError(missingText(tenants, target))
    return await action.run({ ...request, admin })
  } catch (error) {
    if (isExpected(error)) return printError(error.message)
    throw error
  } finally {
    await admin.close()
  }
}

const missingText = (tenants: readonly string[], { tenant, database, folder }: ActionRequest['target']): string => {
  const where = database === undefined ? folder : 'the database'
  const others =
    tenants.length === 0
      ? 'nothing was remembered there yet'
      : `there are those of ${tenants.map(ownerText).join(', ')}`
  return `there is no memory of ${ownerText(tenant)} in ${where}; ${others}`
}

/** Whether the message is for the user; other errors are bugs. By name, because the classes are not loaded here. */
const isExpected = (error: unknown): error is Error =>
  error instanceof Error && ['RequestError', 'StoreError'].includes(error.name)
