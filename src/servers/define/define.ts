import { deliver } from '../../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Peer, Upstream } from '../../protocol/exchange.ts'
import { META, TASKS_EXTENSION } from '../../protocol/meta.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { CHANGING_LISTS } from '../../protocol/notifications.ts'
import { MODERN, SERVED } from '../../protocol/revisions.ts'
import { SlotList } from '../../std/slot-list.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { type Call, type RunningCall, startCall, textParam } from './call.ts'
import { type Completable, complete } from './completion.ts'
import { failure, toRpcError } from './failures.ts'
import { createItemList, type Items } from './item-list.ts'
import { getPrompt, type Prompt } from './prompts.ts'
import { isKnownUri, type Resource, readResource, type Template } from './resources.ts'
import { type Announceable, type Changes, createSubscriptions } from './subscriptions.ts'
import { createTaskBoard, type TaskBoard } from './tasks.ts'
import { callTool, type Tool } from './tools.ts'

/** A server as its author writes it; a list that is left out is not offered. */
export interface ServerDefinition {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly instructions?: string
  readonly tools?: Items<Tool>
  readonly prompts?: Items<Prompt>
  readonly resources?: Items<Resource>
  readonly templates?: Items<Template>
  readonly hasTasks?: boolean // its tools may become tasks
}

/** An upstream that runs in this process. */
export interface DefinedServer extends Upstream {
  /** Announces changes that no call made. */
  readonly changed: Changes
}

/** Makes an upstream of a definition. It speaks the newest revision; the bridge converts for older callers. */
export const defineServer = (definition: ServerDefinition): DefinedServer => {
  const tasks = createTaskBoard()
  const { handlers, announceable } = methodsOf(definition, tasks)
  const completeResult = createResultCompleter(definition)
  const subscriptions = createSubscriptions(announceable, completeResult('subscriptions/listen', Json.empty))
  const running = new SlotList<RunningCall>()
  const closing = rpcError('internal', `The server ${definition.name} is closing`)
  let isClosed = false

  const run = async (exchange: Exchange, handler: Handler): Promise<void> => {
    const complete = (result: Json): Json => completeResult(exchange.method, result)
    const current = startCall(exchange, subscriptions.changes, tasks, complete)
    running.add(current)
    const frame = await answer(handler, current, complete)
    running.delete(current)
    current.end(frame)
  }
  const dispatch = (exchange: Exchange): void => {
    if (exchange.kind === 'notification' || exchange.signal.reason) return
    const handler = handlers.get(exchange.method)
    if (!isClosed && exchange.method === 'subscriptions/listen') return subscriptions.listen(exchange)
    if (!isClosed && handler) return void run(exchange, handler)
    const error = isClosed ? closing : rpcError('methodNotFound', `Method not found: ${exchange.method}`)
    void deliver(exchange.sink, { kind: 'failure', error })
  }
  const peer: Peer = { revision: MODERN, asks: true, dispatch }
  return {
    changed: subscriptions.changes,
    open: async () => {
      if (isClosed) throw new RpcFailure(closing)
      return peer
    },
    close: async () => {
      isClosed = true
      subscriptions.close()
      for (const { end } of running.entries) end({ kind: 'failure', error: closing })
      running.clear()
    },
  }
}

/** Runs a handler to its last frame; anything it throws becomes a failure. */
const answer = async (
  handler: Handler,
  { call }: RunningCall,
  completeResult: (result: Json) => Json,
): Promise<Frame> => {
  try {
    return { kind: 'result', result: completeResult(await handler(call)) }
  } catch (error) {
    return { kind: 'failure', error: toRpcError(error) }
  }
}

/** Adds the members every modern result has, unless the author has set them. */
const createResultCompleter = ({ name, version, title, description }: ServerDefinition) => {
  const info = Json.of({ name, title, version, description })
  return (method: string, result: Json): Json => {
    const meta = result.get('_meta') ?? Json.empty
    let completed = withDefault(result, 'resultType', 'complete')
    // Not cacheable: results may differ by caller, and changes are announced.
    if (methodInfo(method)?.cacheable)
      completed = withDefault(withDefault(completed, 'ttlMs', 0), 'cacheScope', 'private')
    return completed.with('_meta', withDefault(meta, META.serverInfo, info))
  }
}

const withDefault = (json: Json, key: string, value: Json | string | number): Json =>
  json.has(key) ? json : json.with(key, value)

/** Answers one method with the body of its result. */
type Handler = (call: Call) => Json | Promise<Json>

type MethodRow = readonly [method: string, isOffered: boolean, handler: Handler]

/** The handlers of the methods a definition offers, and what it can announce. */
const methodsOf = (
  definition: ServerDefinition,
  tasks: TaskBoard,
): { readonly handlers: ReadonlyMap<string, Handler>; readonly announceable: Announceable } => {
  const tools = createItemList('tools', definition.tools ?? [])
  const prompts = createItemList('prompts', definition.prompts ?? [])
  const resources = createItemList('resources', definition.resources ?? [])
  const templates = createItemList('resourceTemplates', definition.templates ?? [])
  const offers = {
    tools: definition.tools !== undefined,
    tasks: definition.hasTasks === true,
    prompts: definition.prompts !== undefined,
    resources: definition.resources !== undefined || definition.templates !== undefined,
    completions: [...prompts.all(), ...templates.all()].some(({ completers }) => completers.size > 0),
  }
  const rows: readonly MethodRow[] = [
    ['server/discover', true, () => discover(definition, offers)],
    ['tools/list', offers.tools, ({ params }) => tools.toResult(params)],
    ['tools/call', offers.tools, call => callTool(tools, call)],
    ['tasks/get', offers.tasks, tasks.get],
    ['tasks/update', offers.tasks, tasks.update],
    ['tasks/cancel', offers.tasks, tasks.cancel],
    ['prompts/list', offers.prompts, ({ params }) => prompts.toResult(params)],
    ['prompts/get', offers.prompts, call => getPrompt(prompts, call)],
    ['resources/list', offers.resources, ({ params }) => resources.toResult(params)],
    ['resources/templates/list', offers.resources, ({ params }) => templates.toResult(params)],
    ['resources/read', offers.resources, call => readResource(resources, templates, call)],
    [
      'completion/complete',
      offers.completions,
      ({ params }) => complete(params, ref => findReference(prompts.find, templates.find, ref)),
    ],
  ]
  return {
    handlers: new Map(rows.flatMap(([method, isOffered, handler]) => (isOffered ? [[method, handler]] : []))),
    announceable: {
      lists: CHANGING_LISTS.filter(list => offers[list]),
      hasResource: uri => isKnownUri(resources, templates, uri),
    },
  }
}

const discover = (
  { instructions }: ServerDefinition,
  offers: Readonly<Record<'tools' | 'tasks' | 'prompts' | 'resources' | 'completions', boolean>>,
): Json => {
  const when = (isOffered: boolean, capability: PlainObject) => (isOffered ? capability : undefined)
  return Json.of({
    supportedVersions: SERVED,
    capabilities: {
      logging: {},
      completions: when(offers.completions, {}),
      prompts: when(offers.prompts, { listChanged: true }),
      resources: when(offers.resources, { listChanged: true, subscribe: true }),
      tools: when(offers.tools, { listChanged: true }),
      extensions: when(offers.tasks, { [TASKS_EXTENSION]: {} }),
    },
    instructions,
  })
}

type Find = (name: string) => Completable | undefined

/** The prompt or the template that a completion refers to. */
const findReference = (findPrompt: Find, findTemplate: Find, ref: Json): Completable => {
  const type = textParam(ref, 'type')
  if (type !== 'ref/prompt' && type !== 'ref/resource')
    throw failure('invalidParams', `ref.type must be ref/prompt or ref/resource, not ${type}`)
  const isPrompt = type === 'ref/prompt'
  const name = textParam(ref, isPrompt ? 'name' : 'uri')
  const found = isPrompt ? findPrompt(name) : findTemplate(name)
  if (!found) throw failure('invalidParams', `Unknown ${isPrompt ? 'prompt' : 'resource template'}: ${name}`)
  return found
}
