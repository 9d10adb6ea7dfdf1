import { NEVER } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { isLevel, LEVELS } from '../../protocol/methods.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { createHiddenReferences, type HiddenReference } from '../policy/hidden-references.ts'
import { type RouteContext, rejectParams, rejectWith } from './route-context.ts'
import { memberSink, taskKey } from './route-frames.ts'
import { type LocateResource, rejectUnknownResource } from './route-resources.ts'

const ROOTS_CHANGED = 'notifications/roots/list_changed'

/** Sets the log level of every member that may log; the caller need not wait for them. */
export const createLevelRoute =
  (context: RouteContext) =>
  (exchange: Exchange): void => {
    const level = exchange.params.get('level')?.asString()
    if (!isLevel(level))
      return rejectParams(exchange, `Unknown log level ${JSON.stringify(level)}; use one of ${LEVELS.join(', ')}`)
    const rules = context.rulesOf(exchange.caller)
    for (const member of context.members) {
      const logs = context.capabilities(exchange.caller, member)?.has('logging') ?? member.isUp()
      if (logs && rules.allowsServer(member.server))
        context.send(member, { ...exchange, signal: NEVER, sink: () => {} })
    }
    void deliver(exchange.sink, { kind: 'result', result: Json.empty })
  }

/** Routes methods the specification does not know, or knows by the thing they name. */
export const createOtherRoute = (context: RouteContext, locate: LocateResource) => {
  const hiddenIn = createHiddenReferences(context)

  const permitted = (exchange: Exchange, member: Member | undefined): Member | undefined =>
    member && context.rulesOf(exchange.caller).allowsServer(member.server) ? member : undefined

  /** A member whose extension bears the first word of the method, if there is but one. */
  const byExtension = (exchange: Exchange): Member | undefined => {
    const word = exchange.method.slice(0, Math.max(0, exchange.method.indexOf('/')))
    const able = context.members.filter(member => {
      const extensions = context.capabilities(exchange.caller, member)?.get('extensions')
      return word !== '' && extensions?.entries().some(([id]) => id === word || id.split('/').includes(word))
    })
    return able.length === 1 ? permitted(exchange, able[0]) : undefined
  }

  const byTask = ({ caller, params }: Exchange): Member | undefined => {
    const taskId = params.get('taskId')?.asString()
    return taskId === undefined ? undefined : context.provenance.memberOf(caller, taskKey(taskId))
  }

  /** The exchange with the owner's own word for what it names. */
  const byWord = async (exchange: Exchange): Promise<{ member: Member; exchange: Exchange } | undefined> => {
    const { caller, params } = exchange
    const uri = params.get('uri')?.asString()
    const place = uri === undefined ? undefined : await locate(caller, uri)
    if (place) return { member: place.member, exchange: { ...exchange, params: params.with('uri', place.uri) } }
    const name = params.get('name')?.asString()
    for (const kind of name === undefined ? [] : (['tools', 'prompts'] as const)) {
      const found = (await context.lists.get(caller, kind)).find(name ?? '')
      if (found && 'member' in found)
        return { member: found.member, exchange: { ...exchange, params: params.with('name', found.original) } }
    }
    return undefined
  }

  const deliver = (member: Member, exchange: Exchange): void =>
    context.when(hiddenIn(exchange, member), exchange, hidden => {
      if (hidden) return refuseHidden(exchange, hidden)
      context.send(
        member,
        context.isAggregate ? { ...exchange, sink: memberSink(context, exchange, member) } : exchange,
      )
    })

  const request = (exchange: Exchange): void => {
    const only = context.members.length === 1 ? context.members[0] : undefined
    const member = permitted(exchange, only ?? byExtension(exchange) ?? byTask(exchange))
    if (member) return deliver(member, exchange)
    context.when(byWord(exchange), exchange, found => {
      if (found) return deliver(found.member, found.exchange)
      const message = `Method not found: no server of this workspace is known to have ${exchange.method}`
      rejectWith(exchange, rpcError('methodNotFound', message))
    })
  }

  /** Notices go to whom they concern: new roots to those who may know the old ones, an extension's to its owner. */
  const notify = (exchange: Exchange): void => {
    const { caller, method } = exchange
    const [only, ...others] = context.members
    if (only && others.length === 0) {
      if (permitted(exchange, only)) deliver(only, exchange)
      return
    }
    if (method === ROOTS_CHANGED && caller.session !== undefined) {
      for (const member of context.provenance.sessionMembers(caller.session)) context.send(member, exchange)
      return
    }
    const member = byExtension(exchange)
    if (member) deliver(member, exchange)
    else context.log.debug({ method, workspace: caller.workspace }, 'dropped a notification that is for no server')
  }

  return (exchange: Exchange): void => (exchange.kind === 'notification' ? notify(exchange) : request(exchange))
}

/** What is hidden is answered like what does not exist; a notification that names it is dropped. */
const refuseHidden = (exchange: Exchange, hidden: HiddenReference): void => {
  if (exchange.kind === 'notification') return
  if (hidden === 'too many') return rejectParams(exchange, 'This request names more than 10,000 things; send several')
  if (hidden.kinds.includes('resources')) return rejectUnknownResource(exchange, hidden.text)
  rejectParams(exchange, `Unknown ${hidden.kinds.includes('tools') ? 'tool' : 'prompt'}: ${hidden.text}`)
}
