import { capabilitiesFingerprint } from '../protocol/capabilities.ts'
import { failWith } from '../protocol/deliver.ts'
import { type RpcError, RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame, Peer, Upstream } from '../protocol/exchange.ts'
import { LIST_CHANGES } from '../protocol/notifications.ts'
import { withDispatch } from '../protocol/with-dispatch.ts'
import { Json } from '../wire/json/json.ts'
import { PinsUnavailable } from './pin-documents.ts'
import { readToolList } from './read-tool-list.ts'
import type { PinnedList, ServerPins } from './server-pins.ts'
import { readDefinition, type ToolDefinition } from './tool-definition.ts'

const SEEN_MS = 5 * 60_000 // a list that is older is read again before a call
const MOST_CLIENTS = 64 // whose lists of one peer are remembered

/** What a peer has listed to clients with certain capabilities. */
interface SeenList {
  readonly until: number
  readonly rejected: ReadonlyMap<string, string> // the hash by name
}

interface PinnedUpstreamOptions {
  readonly pins: ServerPins
  /** The principal whose list a caller gets; undefined: every caller gets the same. */
  readonly ownerOf: (caller: Caller) => string | undefined
}

/**
 * Wraps an upstream whose tools are pinned. It hides tools that are not approved from every list, and rejects their calls, whatever
 * name a client used for them: everything that reaches the server passes here.
 */
export const pinUpstream = (upstream: Upstream, { pins, ownerOf }: PinnedUpstreamOptions): Upstream => {
  const pinned = new WeakMap<Peer, Peer>() // one for each peer: the bridge compares peers by identity
  let seen = new WeakMap<Peer, Map<string, SeenList>>()
  const reading = new WeakMap<Peer, Map<string, Promise<SeenList>>>()

  const pinPeer = (peer: Peer): Peer => {
    const known = pinned.get(peer) ?? wrapPeer(peer, dispatchTo(peer))
    pinned.set(peer, known)
    return known
  }

  const dispatchTo =
    (peer: Peer): Dispatch =>
    exchange => {
      if (exchange.kind === 'notification') return peer.dispatch(exchange)
      switch (exchange.method) {
        case 'tools/list':
          return list(peer, exchange)
        case 'tools/call':
          return call(peer, exchange)
        default:
          return peer.dispatch({ ...exchange, sink: watchChanges(exchange) })
      }
    }

  /** After a server has announced a change, its list is read again before the next call. */
  const watchChanges = ({ sink }: Exchange): Exchange['sink'] => {
    return frame => {
      if (frame.kind === 'notice' && frame.method === LIST_CHANGES.tools.method) seen = new WeakMap()
      return sink(frame)
    }
  }

  const list = (peer: Peer, exchange: Exchange): void => {
    const { caller, params } = exchange
    const known = pins.listOf(ownerOf(caller))
    const send = (): void => {
      const isFirst = !params.has('cursor')
      const filter = (frame: Frame): Frame => {
        if (frame.kind !== 'result') return frame
        const isComplete = isFirst && !frame.result.has('nextCursor')
        return { kind: 'result', result: filterPage(peer, caller, known, frame.result, isComplete) }
      }
      peer.dispatch({ ...exchange, sink: frame => exchange.sink(filter(frame)) })
    }
    if (known.isLoaded && known.isPinned) return send()
    void prepare(peer, caller, known)
      .then(() => !exchange.signal.reason && send())
      .catch((thrown: unknown) => failWith(exchange, asFailure(thrown)))
  }

  const call = (peer: Peer, exchange: Exchange): void => {
    const name = exchange.params.get('name')?.asString()
    if (name === undefined) return peer.dispatch(exchange) // the server's own error
    const known = pins.listOf(ownerOf(exchange.caller))
    const decide = ({ rejected }: SeenList): void => {
      const hash = rejected.get(name)
      const isRejected = hash !== undefined && !known.isApproved({ name, hash }) // it may have been approved since
      const isAllowed = !isRejected && known.hasApproved(name)
      if (isAllowed) return peer.dispatch({ ...exchange, sink: watchChanges(exchange) })
      exchange.record?.denied()
      failWith(exchange, new RpcFailure(quarantineError(pins.server, name, known.hasApproved(name))))
    }
    const latest = seenBy(peer, exchange.caller)
    if (latest && known.isLoaded) return decide(latest)
    readOnce(peer, exchange.caller, known)
      .then(found => !exchange.signal.reason && decide(found))
      .catch((thrown: unknown) => failWith(exchange, asFailure(thrown)))
  }

  /** Loads the pins, and makes them of the first list. */
  const prepare = async (peer: Peer, caller: Caller, known: PinnedList): Promise<void> => {
    await known.load()
    if (!known.isPinned) await readOnce(peer, caller, known)
  }

  const seenBy = (peer: Peer, caller: Caller): SeenList | undefined => {
    const latest = seen.get(peer)?.get(clientOf(caller, ownerOf))
    return latest && latest.until > Date.now() ? latest : undefined
  }

  /** Reads the whole list; callers that need it meanwhile share the reading. */
  const readOnce = (peer: Peer, caller: Caller, known: PinnedList): Promise<SeenList> => {
    const client = clientOf(caller, ownerOf)
    const running = reading.get(peer) ?? new Map<string, Promise<SeenList>>()
    reading.set(peer, running)
    const work = running.get(client) ?? readAndCompare(peer, caller, known).finally(() => running.delete(client))
    running.set(client, work)
    return work
  }

  const readAndCompare = async (peer: Peer, caller: Caller, known: PinnedList): Promise<SeenList> => {
    await known.load()
    const { tools, isComplete } = await readToolList(peer, caller, !known.isPinned)
    const definitions = tools.flatMap(tool => readDefinition(tool) ?? [])
    if (!known.isPinned) await known.pinFirst(definitions)
    return compare(peer, caller, known, definitions, isComplete)
  }

  const filterPage = (peer: Peer, caller: Caller, known: PinnedList, page: Json, isComplete: boolean): Json => {
    const tools = page.get('tools')
    if (!tools) return page
    const definitions = new Map(tools.elements().map(tool => [tool, readDefinition(tool)]))
    const named = [...definitions.values()].flatMap(definition => definition ?? [])
    compare(peer, caller, known, named, isComplete)
    const shown = tools.map(tool => {
      const definition = definitions.get(tool)
      return definition && known.isApproved(definition) ? tool : undefined
    })
    return shown === tools ? page : page.with('tools', shown)
  }

  /** Compares what was listed with the pins, and records what is in quarantine. */
  const compare = (
    peer: Peer,
    caller: Caller,
    known: PinnedList,
    definitions: readonly ToolDefinition[],
    isComplete: boolean,
  ): SeenList => {
    const rejected = definitions.filter(definition => !known.isApproved(definition))
    const hashes = new Map(rejected.map(({ name, hash }) => [name, hash]))
    const approved = new Set(definitions.flatMap(({ name }) => (hashes.has(name) ? [] : [name])))
    const client = clientOf(caller, ownerOf)
    known.sighted(
      { client: capabilitiesFingerprint(caller.capabilities), approved, rejected: hashes, isComplete },
      rejected,
    )
    const found: SeenList = { until: Date.now() + SEEN_MS, rejected: hashes }
    if (!isComplete) return found
    const clients = seen.get(peer) ?? new Map<string, SeenList>()
    if (clients.size >= MOST_CLIENTS) clients.clear()
    seen.set(peer, clients.set(client, found))
    return found
  }

  const asFailure = (thrown: unknown): unknown =>
    thrown instanceof PinsUnavailable ? new RpcFailure(unavailableError(pins.server, thrown.message)) : thrown

  return {
    ...upstream, // it may offer more to the gateway itself
    open: (...args) => upstream.open(...args).then(pinPeer),
    ...(upstream.sharedKey && { sharedKey: caller => upstream.sharedKey?.(caller) }),
    ...(upstream.probe && { probe: async () => (await upstream.probe?.()) ?? false }),
    ...(upstream.processCount && { processCount: () => upstream.processCount?.() ?? 0 }),
    ...(upstream.runsFor && { runsFor: caller => upstream.runsFor?.(caller) ?? false }),
    close: () => upstream.close(),
  }
}

const wrapPeer = (peer: Peer, dispatch: Dispatch): Peer =>
  Object.defineProperties(withDispatch(peer, dispatch), {
    hasServedUsers: { get: () => peer.hasServedUsers, enumerable: true },
    isReplica: { get: () => peer.isReplica, enumerable: true },
  })

/** Equal for callers that a server lists the same tools to. */
const clientOf = (caller: Caller, ownerOf: PinnedUpstreamOptions['ownerOf']): string =>
  `${capabilitiesFingerprint(caller.capabilities)}\n${ownerOf(caller) ?? ''}`

/** The answer to a call of a tool in quarantine. */
export const quarantineError = (server: string, tool: string, hasChanged: boolean): RpcError => {
  const why = hasChanged
    ? 'the server has changed its definition since it was approved'
    : 'it was not among the tools that were approved'
  const message = `Tool "${tool}" of server "${server}" is in quarantine: ${why}. The owner of the gateway sees it, and approves it, with "dragoman approve ${server}/${tool}".`
  return rpcError('invalidParams', message, Json.of({ reason: 'quarantined', upstream: server, tool }))
}

const unavailableError = (server: string, reason: string): RpcError =>
  rpcError(
    'internal',
    `The tools of server "${server}" are pinned, and the pins cannot be read: ${reason}. No tool of it is listed or called until the store can be used.`,
    Json.of({ reason: 'pins_unavailable', upstream: server }),
  )
