import type { Caller, Exchange, Frame, Sink } from '../../protocol/exchange.ts'
import type { Json } from '../../wire/json/json.ts'
import type { MergedList } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { withServerName, withServerNames } from './member-questions.ts'
import type { RouteContext } from './route-context.ts'
import { aliasFor, type RenameUri, rewriteUris } from './uris.ts'

const UPDATED = 'notifications/resources/updated'
const URI = Buffer.from('"uri"')

type Aliases = ReadonlyMap<string, ReadonlyMap<string, string>>
const known = new WeakMap<MergedList, Aliases>()

/** By server, what its URIs on that shelf are shown as instead; each shelf is read once. */
export const aliasesOf = (shelf: MergedList): Aliases => {
  const before = known.get(shelf)
  if (before) return before
  const aliases = new Map<string, Map<string, string>>()
  for (const { member, original, exposed } of shelf.items) {
    if (original === exposed) continue
    const mine = aliases.get(member.server) ?? new Map<string, string>()
    aliases.set(member.server, mine.set(original, exposed))
  }
  known.set(shelf, aliases)
  return aliases
}

/** Whether a member has URIs that this caller knows by an alias. */
export const hasAliases = ({ lists: shelves }: RouteContext, caller: Caller, { server }: Member): boolean => {
  const shelf = shelves.cached(caller, 'resources')
  return shelf !== undefined && aliasesOf(shelf).has(server)
}

/** What a member's URIs are shown to a caller as, as far as its lists have been asked for. */
export const shownUriFor = (context: RouteContext, caller: Caller, member: Member): RenameUri => {
  const shelf = context.lists.cached(caller, 'resources')
  const mine = shelf && aliasesOf(shelf).get(member.server)
  return uri => {
    const alias = mine?.get(uri)
    if (alias !== undefined) return alias
    const found = shelf?.find(uri)
    // Another member shows it as its own; here it means what this one has under it.
    const isOfAnother = found && 'member' in found && found.member !== member
    return isOfAnother ? aliasFor(context.namespaceOf(member), uri) : undefined
  }
}

/** Hears what one of several members answers: says who asks, remembers whose links they are, shows them by their alias. */
export const memberSink =
  (context: RouteContext, exchange: Exchange, member: Member): Sink =>
  frame =>
    exchange.sink(heard(context, exchange, member, frame))

const heard = (context: RouteContext, exchange: Exchange, member: Member, frame: Frame): Frame => {
  switch (frame.kind) {
    case 'result':
      return { kind: 'result', result: heardResult(context, exchange, member, frame.result) }
    case 'question':
      return withServerName(frame, member.server)
    case 'notice':
      if (frame.method !== UPDATED) return frame
      return { ...frame, params: rewriteUris(UPDATED, frame.params, shownUriFor(context, exchange.caller, member)) }
    case 'failure':
      return frame
  }
}

const heardResult = (context: RouteContext, { caller, method }: Exchange, member: Member, answer: Json): Json => {
  const result = withServerNames(answer, member.server)
  const task = result.get('taskId') ?? result.at('task', 'taskId')
  if (task) context.provenance.record(caller, taskKey(task.asString() ?? ''), member)
  const spoken = result.get('content') ?? result.get('messages')
  const meta = result.get('_meta')
  const isOfApp = meta?.has('ui') || meta?.has('ui/resourceUri')
  if (!isOfApp && !(spoken && mentions(spoken))) return result
  const rename = shownUriFor(context, caller, member)
  return rewriteUris(method, result, uri => {
    const alias = rename(uri)
    if (alias === undefined) context.provenance.record(caller, uri, member)
    return alias
  })
}

/** Under which word a task is remembered; no URI has a space. */
export const taskKey = (taskId: string): string => `task ${taskId}`

/** Looks for links without reading anything. */
const mentions = (json: Json): boolean => {
  const pieces: Buffer[] = []
  json.appendTo(pieces)
  return pieces.some(piece => piece.includes(URI))
}
