import { batch, signal } from '@preact/signals'
import { META } from '../../../protocol/meta.ts'
import type { Revision } from '../../../protocol/revisions.ts'
import { gatewayUrl, messageOf } from '../../api.ts'
import { type ClientSettings, capabilitiesOf, DEFAULT_SETTINGS, isSameClient } from '../../mcp/client-settings.ts'
import type { AnswerQuestion, ChangedList, LogMessage, McpClient, ServerAbout } from '../../mcp/mcp-client.ts'
import { isObject, type JsonObject, McpError } from '../../mcp/messages.ts'
import { createMcpClient, fetchAll, fetchPage } from '../../mcp/open-client.ts'
import { loadSession, mcpToken, session } from '../../session.ts'
import { closeAllInUse, closeWhenIdle } from './calls.ts'
import { type ExploreItem, type ExploreKind, KIND_INFO, KINDS, readItem } from './kinds.ts'
import { isOneServer } from './targets.ts'

export interface ItemList {
  readonly state: 'none' | 'loading' | 'ready' | 'failed' // none: the server does not have this kind
  readonly items: readonly ExploreItem[]
  readonly error?: string | undefined
  readonly note?: string | undefined // what the list lacks
  readonly next?: string | undefined // the cursor of the next page, which is read on demand
  readonly leftOut?: number | undefined // tools that the budget of the workspace leaves out
}

/** The connection of the page: one target, one revision. */
export interface ExploreConnection {
  readonly target: string
  readonly revision: Revision
  readonly settings: ClientSettings
  readonly client: McpClient
  readonly state: 'connecting' | 'ready' | 'failed'
  readonly about?: ServerAbout | undefined
  readonly error?: string | undefined
}

const NO_LIST: ItemList = { state: 'none', items: [] }
const LOADING: ItemList = { state: 'loading', items: [] }
const IDLE_MS = 30_000
const COALESCE_MS = 150
const PAGE_MS = 120 // between two updates of a list that is being loaded
const MOST_LOGS = 200

/** How the client presents itself, until the page is closed. */
export const clientSettings = signal<ClientSettings>(DEFAULT_SETTINGS)
export const connection = signal<ExploreConnection | undefined>(undefined)
export const isLive = signal(false)
/** Log messages that belong to no call. */
export const serverLog = signal<readonly LogMessage[]>([])
export const lists = signal<Readonly<Record<ExploreKind, ItemList>>>(allLists(NO_LIST))
/** Whether tools are listed, too, that the budget of a workspace leaves out. */
export const showsAllTools = signal(false)
/** How often each watched resource was updated. */
export const updates = signal<ReadonlyMap<string, number>>(new Map())
export const watched = signal<ReadonlySet<string>>(new Set())

function allLists(list: ItemList): Readonly<Record<ExploreKind, ItemList>> {
  return { tools: list, prompts: list, resources: list, templates: list }
}

export const targetUrl = (target: string): string => gatewayUrl(`mcp/${encodeURIComponent(target)}`)

/** Connects to a target as a client of a revision with its settings; the former connection is closed. */
export const connectTo = (target: string, revision: Revision, onQuestion: AnswerQuestion): void => {
  const settings = clientSettings.peek()
  clearTimeout(idle)
  const before = connection.peek()
  const isSame = before?.target === target && before.revision === revision && isSameClient(before.settings, settings)
  if (isSame && before.state !== 'failed') return
  if (before) closeWhenIdle(before.client)
  const isCurrent = (): boolean => connection.peek()?.client === client
  const client = createMcpClient(
    revision,
    {
      url: targetUrl(target),
      version: session.peek()?.version ?? '0',
      capabilities: capabilitiesOf(settings),
      logLevel: settings.logLevel,
      token: mcpToken,
      onUnauthorized: () => void loadSession().catch(() => {}),
    },
    {
      onListChanged: list => isCurrent() && reloadSoon(list),
      onResourceUpdated: uri => {
        updates.value = new Map(updates.peek()).set(uri, (updates.peek().get(uri) ?? 0) + 1)
      },
      onLog: message => {
        serverLog.value = [...serverLog.peek(), message].slice(-MOST_LOGS)
      },
      onQuestion,
      onLive: isOpen => {
        if (isCurrent()) isLive.value = isOpen
      },
    },
  )
  batch(() => {
    connection.value = { target, revision, settings, client, state: 'connecting' }
    // The lists of the same target stay until the new ones are there: nothing jumps.
    if (before?.target !== target) lists.value = allLists(LOADING)
    isLive.value = false
    serverLog.value = []
    updates.value = new Map()
    watched.value = new Set()
  })
  void load(client)
}

const load = async (client: McpClient): Promise<void> => {
  const update = (change: Partial<ExploreConnection>): void => {
    const current = connection.peek()
    if (current?.client === client) connection.value = { ...current, ...change }
  }
  try {
    const about = await client.connect()
    update({ state: 'ready', about })
    await Promise.all(KINDS.map(kind => loadList(kind)))
  } catch (error) {
    update({ state: 'failed', error: messageOf(error) })
    if (connection.peek()?.client === client)
      lists.value = allLists({ state: 'failed', items: [], error: messageOf(error) })
  }
}

export const loadList = async (kind: ExploreKind): Promise<void> => {
  const current = connection.peek()
  if (!current) return
  const { client, about } = current
  const set = (list: ItemList): void => {
    if (connection.peek()?.client === client) lists.value = { ...lists.peek(), [kind]: list }
  }
  const { method, member, capability } = KIND_INFO[kind]
  if (about && !isObject(about.capabilities[capability])) return set(NO_LIST)
  const had = lists.peek()[kind]
  let shownAt = Date.now()
  try {
    const send = senderOf(client, kind)
    if (clientSettings.peek().isPaged) return set(await readPage(kind, send, []))
    const { items, servers, meta, isCut } = await fetchAll(send, method, member, (part, owners) => {
      if (had.state === 'ready' || Date.now() - shownAt < PAGE_MS) return
      shownAt = Date.now()
      set({ state: 'loading', items: part.map((each, at) => readItem(kind, each, owners[at])) })
    })
    const read = items.map((each, at) => readItem(kind, each, servers[at]))
    set({ state: 'ready', items: read, note: noteOf(meta, isCut), leftOut: leftOutOf(meta) })
  } catch (error) {
    if (error instanceof McpError && error.reason === 'cancelled') return
    set({ ...had, state: 'failed', error: messageOf(error) })
  }
}

/** Reads the next page of a list that is read page by page. */
export const loadNextPage = async (kind: ExploreKind): Promise<void> => {
  const client = connection.peek()?.client
  const had = lists.peek()[kind]
  if (!client || had.next === undefined || had.state !== 'ready') return
  const set = (list: ItemList): void => {
    if (connection.peek()?.client === client) lists.value = { ...lists.peek(), [kind]: list }
  }
  set({ ...had, state: 'loading' })
  try {
    set(await readPage(kind, senderOf(client, kind), had.items, had.next))
  } catch (error) {
    set({ ...had, state: 'failed', error: messageOf(error) })
  }
}

const readPage = async (
  kind: ExploreKind,
  send: McpClient['request'],
  before: readonly ExploreItem[],
  cursor?: string,
): Promise<ItemList> => {
  const { method, member } = KIND_INFO[kind]
  const { items, servers, meta, next } = await fetchPage(send, method, member, cursor)
  return {
    state: 'ready',
    items: [...before, ...items.map((each, at) => readItem(kind, each, servers[at]))],
    note: noteOf(meta, false),
    leftOut: leftOutOf(meta),
    next,
  }
}

/** Lists the tools that clients see, or all of them. */
export const showAllTools = (isOn: boolean): void => {
  showsAllTools.value = isOn
  void loadList('tools')
}

/** Sends the requests for a list. */
const senderOf = (client: McpClient, kind: ExploreKind): McpClient['request'] => {
  const _meta = {
    ...(kind === 'tools' && { [META.allTools]: showsAllTools.peek() }),
    ...(!isOneServer(connection.peek()?.target) && { [META.servers]: true }),
  }
  return (name, params) => client.request(name, { ...params, ...(Object.keys(_meta).length > 0 && { _meta }) })
}

const leftOutOf = (meta: JsonObject | undefined): number | undefined => {
  const left = meta?.[META.allTools]
  return typeof left === 'number' ? left : undefined
}

/** What the gateway says about a list that is not complete. */
const noteOf = (meta: JsonObject | undefined, isCut: boolean): string | undefined => {
  if (isCut) return 'The list has no end; the first part is shown.'
  const missing = meta?.['dragoman/unavailable']
  const names = Array.isArray(missing)
    ? missing.map(each => (isObject(each) ? String(each.server ?? each.name) : String(each)))
    : []
  return names.length === 0 ? undefined : `Without ${names.join(', ')}: not available now.`
}

const due = new Set<ExploreKind>()
let timer: ReturnType<typeof setTimeout> | undefined

const reloadSoon = (list: ChangedList): void => {
  for (const kind of KINDS) if (KIND_INFO[kind].capability === list) due.add(kind)
  clearTimeout(timer)
  timer = setTimeout(() => {
    for (const kind of due) void loadList(kind)
    due.clear()
  }, COALESCE_MS)
}

/** Reads everything again. */
export const reloadAll = (): void => {
  const current = connection.peek()
  if (!current) return
  connection.value = { ...current, state: 'connecting' }
  void load(current.client)
}

export const watchResource = async (uri: string, isOn: boolean): Promise<void> => {
  await connection.peek()?.client.watch(uri, isOn)
  const next = new Set(watched.peek())
  if (isOn) next.add(uri)
  else next.delete(uri)
  watched.value = next
}

let idle: ReturnType<typeof setTimeout> | undefined

/** Called when the page is left: the connection is closed after a while, unless the user comes back or a call runs. */
export const leaveConnection = (isBusy: () => boolean): void => {
  clearTimeout(idle)
  idle = setTimeout(() => {
    if (isBusy()) return leaveConnection(isBusy)
    connection.peek()?.client.close()
    connection.value = undefined
    lists.value = allLists(NO_LIST)
  }, IDLE_MS)
}

addEventListener('pagehide', () => {
  connection.peek()?.client.close()
  closeAllInUse()
})
