import { NEVER } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { isLogSeverity, isMethodOf, LOG_SEVERITIES } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { taskSupportOf } from '../../protocol/revisions.ts'
import { declaresTasks, TASKS_NOT_DECLARED, UNKNOWN_TASK } from '../../protocol/tasks.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { createHiddenReferences, type HiddenReference } from '../policy/hidden-references.ts'
import { toolsNamedBy } from '../policy/scopes.ts'
import { memberSink } from './member-frames.ts'
import type { RouteContext } from './route-context.ts'
import { type LocateResource, rejectUnknownResource } from './route-resources.ts'
import { rejectParams, rejectWith } from './send.ts'

/** Sets the log level of every member that may log; the caller does not wait for them. */
export const createLevelRoute =
  (context: RouteContext) =>
  (exchange: Exchange): void => {
    const level = exchange.params.get('level')?.asString()
    if (!isLogSeverity(level))
      return rejectParams(
        exchange,
        `Unknown log level ${JSON.stringify(level)}; use one of ${LOG_SEVERITIES.join(', ')}`,
      )
    const rules = context.rulesOf(exchange.caller)
    for (const member of context.members) {
      const canLog = context.capabilities(exchange.caller, member)?.has('logging') ?? member.isUp()
      if (canLog && rules.allowsServer(member.server))
        context.send(member, { ...exchange, signal: NEVER, sink: () => {} })
    }
    void deliver(exchange.sink, { kind: 'result', result: Json.empty })
  }

/** Requests about one task. */
const TASK_REQUESTS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel', 'tasks/result'])

/** Why a request about a task leads to no server. */
const taskRefusal = ({ caller, method }: Exchange): RpcError => {
  const support = taskSupportOf(caller.revision)
  if (support === 'none' || !isMethodOf(method, caller.revision)) return rpcError('methodNotFound')
  return support === 'extension' && !declaresTasks(caller.capabilities) ? TASKS_NOT_DECLARED : UNKNOWN_TASK
}

/** Routes all other methods: those of extensions, those of tasks, and notifications. */
export const createOtherRoute = (context: RouteContext, locate: LocateResource) => {
  const hiddenIn = createHiddenReferences(context)

  const ifAllowed = (exchange: Exchange, member: Member | undefined): Member | undefined =>
    member && context.rulesOf(exchange.caller).allowsServer(member.server) ? member : undefined

  /** The only member with an extension whose id contains the first word of the method. */
  const byExtension = (exchange: Exchange): Member | undefined => {
    const word = exchange.method.slice(0, Math.max(0, exchange.method.indexOf('/')))
    const able = context.members.filter(member => {
      const extensions = context.capabilities(exchange.caller, member)?.get('extensions')
      return word !== '' && extensions?.entries().some(([id]) => id === word || id.split('/').includes(word))
    })
    return able.length === 1 ? ifAllowed(exchange, able[0]) : undefined
  }

  /** The id of a task names its server. */
  const byTask = ({ caller, method, params }: Exchange): Member | undefined => {
    const taskId = method.startsWith('tasks/') ? params.get('taskId')?.asString() : undefined
    return taskId === undefined ? undefined : context.memberByServer(context.serverOfTask?.(caller, taskId))
  }

  /** The member whose URI or name the params have, and the exchange with the member's own form of it. */
  const byReference = async (exchange: Exchange): Promise<{ member: Member; exchange: Exchange } | undefined> => {
    const { caller, params } = exchange
    const uri = params.get('uri')?.asString()
    const location = uri === undefined ? undefined : await locate(caller, uri)
    if (location)
      return { member: location.member, exchange: { ...exchange, params: params.with('uri', location.uri) } }
    const name = params.get('name')?.asString()
    for (const kind of name === undefined ? [] : (['tools', 'prompts'] as const)) {
      const found = (await context.lists.get(caller, kind)).find(name ?? '')
      if (found && 'member' in found)
        return { member: found.member, exchange: { ...exchange, params: params.with('name', found.original) } }
    }
    return undefined
  }

  const forward = (member: Member, exchange: Exchange): void =>
    context.continueWith(hiddenIn(exchange, member), exchange, hidden => {
      if (hidden) return rejectHidden(exchange, hidden)
      const missing =
        exchange.caller.scopes && context.missingScopes?.(exchange.caller, member.server, toolsNamedBy(exchange))
      if (missing) return rejectWith(exchange, missing)
      context.send(
        member,
        context.isAggregate ? { ...exchange, sink: memberSink(context, exchange, member) } : exchange,
      )
    })

  const request = (exchange: Exchange): void => {
    const only = context.members.length === 1 ? context.members[0] : undefined
    const member = ifAllowed(exchange, only ?? byTask(exchange) ?? byExtension(exchange))
    if (member) return forward(member, exchange)
    if (TASK_REQUESTS.has(exchange.method)) return rejectWith(exchange, taskRefusal(exchange))
    context.continueWith(byReference(exchange), exchange, found => {
      if (found) return forward(found.member, found.exchange)
      const message = `Method not found: no server of this workspace is known to have ${exchange.method}`
      rejectWith(exchange, rpcError('methodNotFound', message))
    })
  }

  /** Sends changed roots to the members that may know the old ones, and an extension's notification to its member. */
  const notify = (exchange: Exchange): void => {
    const { caller, method } = exchange
    const [only, ...others] = context.members
    if (only && others.length === 0) {
      if (ifAllowed(exchange, only)) forward(only, exchange)
      return
    }
    if (method === NOTIFICATIONS.rootsChanged && caller.session !== undefined) {
      for (const server of context.provenance.serversOf(caller.session)) {
        const member = context.memberByServer(server)
        if (member) context.send(member, exchange)
      }
      return
    }
    const member = byExtension(exchange)
    if (member) forward(member, exchange)
    else context.log.debug({ method, workspace: caller.workspace }, 'notification for no server dropped')
  }

  return (exchange: Exchange): void => (exchange.kind === 'notification' ? notify(exchange) : request(exchange))
}

/** A hidden item is answered like one that does not exist; a notification that names one is dropped. */
const rejectHidden = (exchange: Exchange, hidden: HiddenReference): void => {
  if (exchange.kind === 'notification') return
  if (hidden === 'too many')
    return rejectParams(exchange, 'This request names more than 10,000 items; split it into several')
  exchange.record?.denied()
  if (hidden.kinds.includes('resources')) return rejectUnknownResource(exchange, hidden.text)
  rejectParams(exchange, `Unknown ${hidden.kinds.includes('tools') ? 'tool' : 'prompt'}: ${hidden.text}`)
}
