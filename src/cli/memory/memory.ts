import { ensureDataDirectory, ensureReadable } from '../../config/data-dir.ts'
import type { Context, Run } from '../command.ts'
import { actionHelp, commandHelp, type Flags, findAction, readLine, UsageError } from '../usage.ts'
import { type Action, complain, limitOf, print, type Request } from './action.ts'
import { groupsOf, ownerText, PLACE_FLAGS, placeOf } from './place.ts'
import { READING } from './reading.ts'
import { CARRYING } from './transfer.ts'
import { WRITING } from './writing.ts'

const ACTIONS: Readonly<Record<string, Action>> = { ...WRITING, ...READING, ...CARRYING }

const COMMON: Flags = { ...PLACE_FLAGS, json: { help: 'print JSON' } }

const { group: _group, ...UNGROUPED } = COMMON
const commonOf = ({ whole }: Action): Flags => (whole ? UNGROUPED : COMMON)

const OWN_FLAGS: Flags = Object.assign({}, ...Object.values(ACTIONS).map(({ flags }) => flags))

const ABOUT = 'Works on the memory of a workspace directly, whether a gateway runs or not.'

/** Adds to memory, searches it and looks after it. */
export const run: Run = async (args, context) => {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h')
    return print(commandHelp('memory', ABOUT, ACTIONS, COMMON))
  const action = findAction(ACTIONS, name)
  // A switch of another action is a mistake, but one that is worth more than "unknown".
  const { flags, words } = readLine(rest, { ...OWN_FLAGS, ...COMMON })
  const common = commonOf(action)
  if (flags.help) return print(actionHelp('memory', action, common))
  const foreign = Object.keys(flags).find(flag => !(flag in action.flags) && !(flag in common))
  if (foreign !== undefined) throw new UsageError(`--${foreign} does not go with "${name}"`)
  const [least, most] = action.words
  if (words.length < least) throw new UsageError(`expected dragoman memory ${action.usage}`)
  if (words.length > most) throw new UsageError(`Unexpected argument '${words[most]}'`)
  const place = await placeOf(flags)
  return perform(action, { words, flags, groups: groupsOf(flags), limit: limitOf(flags), place }, context)
}

const perform = async (action: Action, request: Omit<Request, 'office'>, { openMemory }: Context): Promise<number> => {
  const { place } = request
  if (place.database === undefined) await (action.creates ? ensureDataDirectory : ensureReadable)(place.folder)
  const office = await openMemory(place)
  try {
    const owners = action.creates ? [place.tenant] : await office.tenants()
    if (!owners.includes(place.tenant)) return complain(absentText(place.tenant, owners, place))
    return await action.run({ ...request, office })
  } catch (error) {
    if (isRefusal(error)) return complain(error.message)
    throw error
  } finally {
    await office.close()
  }
}

const absentText = (tenant: string, owners: readonly string[], place: Request['place']): string => {
  const where = place.database === undefined ? place.folder : 'the database'
  const others =
    owners.length === 0 ? 'nothing was remembered there yet' : `there are those of ${owners.map(ownerText).join(', ')}`
  return `there is no memory of ${ownerText(tenant)} in ${where}; ${others}`
}

/** What memory refuses is for whoever asked; everything else is a bug. */
const isRefusal = (error: unknown): error is Error =>
  error instanceof Error && ['Refusal', 'StoreError'].includes(error.name)
