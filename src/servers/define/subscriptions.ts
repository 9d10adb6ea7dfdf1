import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame, Sink } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { failure, toRpcError } from './failures.ts'

/** How a server says that something it offers is no longer what it was. */
export interface Changes {
  tools(): void
  prompts(): void
  resources(): void
  /** One resource; whoever watches it, or a folder above it, is told. */
  updated(uri: string): void
}

const NOTICES = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
} as const

type Flag = keyof typeof NOTICES
const FLAGS = Object.keys(NOTICES) as readonly Flag[]

/** What a server can announce at all. */
export interface Announces {
  readonly flags: readonly Flag[]
  readonly knows: (uri: string) => boolean
}

interface Filter {
  readonly flags: readonly Flag[]
  readonly uris: readonly string[] | undefined // undefined: not asked for
}

interface Listener extends Filter {
  readonly tell: (key: string, frame: Frame) => void
  readonly end: () => void
}

/** Everybody who listens to one server. */
export interface Hub {
  readonly changes: Changes
  listen(exchange: Exchange): void
  close(): void
}

/** Keeps the open `subscriptions/listen` exchanges of a server; each ends with `goodbye`. */
export const createHub = (announces: Announces, goodbye: Json): Hub => {
  const listeners = new Set<Listener>()
  const tell = (key: string, frame: Frame, wants: (listener: Listener) => boolean): void => {
    for (const listener of listeners) if (wants(listener)) listener.tell(key, frame)
  }
  const announce = (flag: Flag) => (): void =>
    tell(flag, notice(NOTICES[flag], Json.empty), listener => listener.flags.includes(flag))
  return {
    changes: {
      tools: announce('toolsListChanged'),
      prompts: announce('promptsListChanged'),
      resources: announce('resourcesListChanged'),
      updated: uri =>
        tell(uri, notice('notifications/resources/updated', Json.of({ uri })), ({ uris }) =>
          (uris ?? []).some(watched => isWithin(uri, watched)),
        ),
    },
    listen: exchange => listen(exchange, announces, listeners, goodbye),
    close: () => {
      for (const listener of listeners) listener.end()
    },
  }
}

const notice = (method: string, params: Json): Frame => ({ kind: 'notice', method, params })

const isWithin = (uri: string, watched: string): boolean =>
  uri === watched || uri.startsWith(watched.endsWith('/') ? watched : `${watched}/`)

const listen = (exchange: Exchange, announces: Announces, listeners: Set<Listener>, goodbye: Json): void => {
  let filter: Filter
  try {
    filter = honoured(readFilter(exchange.params.get('notifications')), announces)
  } catch (error) {
    void deliver(exchange.sink, { kind: 'failure', error: toRpcError(error) })
    return
  }
  const queue = createQueue(exchange.sink)
  const leave = (): void => {
    listeners.delete(listener)
    queue.stop()
  }
  const listener: Listener = {
    ...filter,
    tell: queue.tell,
    end: () => {
      leave()
      forget()
      void deliver(exchange.sink, { kind: 'result', result: goodbye })
    },
  }
  let forget = (): void => {}
  listeners.add(listener)
  queue.tell('acknowledged', notice('notifications/subscriptions/acknowledged', acknowledgement(filter)))
  // Only a shutdown leaves somebody to say goodbye to.
  forget = exchange.signal.onAbort(reason => (reason.kind === 'closing' ? listener.end() : leave()))
}

/** Sends while the reader keeps up; while it is behind, keeps one notice of each kind. */
const createQueue = (sink: Sink) => {
  const waiting = new Map<string, Frame>()
  let state: 'free' | 'busy' | 'stopped' = 'free'
  const tell = (key: string, frame: Frame): void => {
    if (state === 'busy') waiting.set(key, frame)
    if (state !== 'free') return
    const behind = deliver(sink, frame, stop)
    if (!behind) return
    state = 'busy'
    behind.then(resume, resume)
  }
  const resume = (): void => {
    if (state === 'stopped') return
    state = 'free'
    const frames = [...waiting]
    waiting.clear()
    for (const [key, frame] of frames) tell(key, frame)
  }
  const stop = (): void => {
    state = 'stopped'
  }
  return { tell, stop }
}

const readFilter = (json: Json | undefined): Filter => {
  if (!json?.isObject) throw failure('invalidParams', 'notifications must be an object')
  for (const flag of FLAGS)
    if (json.has(flag) && json.get(flag)?.kind !== 'boolean')
      throw failure('invalidParams', `notifications.${flag} must be a boolean`)
  return { flags: FLAGS.filter(flag => json.get(flag)?.asBoolean()), uris: readUris(json.get('resourceSubscriptions')) }
}

const readUris = (json: Json | undefined): string[] | undefined => {
  if (json === undefined) return undefined
  const uris = json.elements().map(uri => uri.asString())
  if (json.kind !== 'array' || !uris.every(uri => uri !== undefined))
    throw failure('invalidParams', 'notifications.resourceSubscriptions must be a list of strings')
  return uris
}

const honoured = (filter: Filter, { flags, knows }: Announces): Filter => ({
  flags: filter.flags.filter(flag => flags.includes(flag)),
  uris: flags.includes('resourcesListChanged') ? filter.uris?.filter(knows) : undefined,
})

const acknowledgement = ({ flags, uris }: Filter): Json =>
  Json.of({ notifications: { ...Object.fromEntries(flags.map(flag => [flag, true])), resourceSubscriptions: uris } })
