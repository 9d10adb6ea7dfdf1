import type { CallProgress, ChangedList, LogMessage, McpClientEvents } from './mcp-client.ts'
import { isObject, type JsonObject } from './messages.ts'

/** The notifications that this client sends or understands. */
export const NOTICE = {
  initialized: 'notifications/initialized',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  message: 'notifications/message',
  rootsChanged: 'notifications/roots/list_changed',
  updated: 'notifications/resources/updated',
  acknowledged: 'notifications/subscriptions/acknowledged',
} as const

const LIST_CHANGED: Readonly<Record<string, ChangedList>> = {
  'notifications/tools/list_changed': 'tools',
  'notifications/prompts/list_changed': 'prompts',
  'notifications/resources/list_changed': 'resources',
}

const textOr = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const readProgress = ({ progress, total, message }: JsonObject): CallProgress => ({
  progress: Number(progress) || 0,
  total: total === undefined || total === null ? undefined : Number(total),
  message: textOr(message),
})

export const readLog = ({ level, logger, data }: JsonObject): LogMessage => ({
  at: Date.now(),
  level: textOr(level) ?? 'info',
  logger: textOr(logger),
  data,
})

/** Hands a notification that belongs to no request to the page. */
export const dispatchNotice = (method: string, params: JsonObject, events: McpClientEvents): void => {
  const list = LIST_CHANGED[method]
  if (list !== undefined) events.onListChanged(list)
  else if (method === NOTICE.updated && typeof params.uri === 'string') events.onResourceUpdated(params.uri)
  else if (method === NOTICE.message) events.onLog(readLog(params))
}

/** What a server says about itself: the result of `initialize`, or of `server/discover`. */
export const readAbout = (result: JsonObject, serverInfo: unknown, text: string) => ({
  serverInfo: isObject(serverInfo) ? serverInfo : {},
  capabilities: isObject(result.capabilities) ? result.capabilities : {},
  instructions: textOr(result.instructions),
  text,
})
