import type { RecordedMessage } from '../../../admin/api/recorder.ts'
import type { MovedPart } from './diff.ts'
import { isSameNode, type JsonNode, nodeAt, readJsonNode, stringAt } from './json-node.ts'

/** Which way a message travels. */
export type MessageFlow = 'toServer' | 'toClient'

/** A recorded message with its text as a value. */
export interface ReadMessage extends RecordedMessage {
  readonly index: number // in the recording
  readonly flow: MessageFlow
  readonly node: JsonNode | undefined // undefined: it was cut, or is no JSON
  readonly role: MessageRole
}

/**
 * What a message is for. `asks`: a result that carries questions (`input_required`); `retry`: a request that carries their
 * answers.
 */
export type MessageRole = 'request' | 'retry' | 'notification' | 'response' | 'asks' | 'question' | 'answer'

/** A message on one side, and what it is on the other. */
export interface MessagePair {
  readonly flow: MessageFlow
  readonly client?: ReadMessage | undefined
  readonly server?: ReadMessage | undefined
  readonly moved: readonly MovedPart[] // from the message that arrived to the one that was sent
  readonly isShared: boolean // its client or server message belongs to an earlier pair, too
}

const flowOf = ({ side, direction }: RecordedMessage): MessageFlow =>
  (side === 'client') === (direction === 'in') ? 'toServer' : 'toClient'

const roleOf = (message: RecordedMessage, node: JsonNode | undefined): MessageRole => {
  if (message.kind === 'request') return nodeAt(node, ['params', 'inputResponses']) ? 'retry' : 'request'
  if (message.kind === 'result' || message.kind === 'error')
    return stringAt(node, ['result', 'resultType']) === 'input_required' ? 'asks' : 'response'
  return message.kind
}

/** Reads the messages of a recording. Responses without a method get that of the request with their id. */
export const readRecordedMessages = (
  messages: readonly RecordedMessage[],
  exchangeMethod: string,
): readonly ReadMessage[] => {
  const methods = new Map<string, string>()
  return messages.map((message, index) => {
    const node = readJsonNode(message.text)
    const id = nodeAt(node, ['id'])
    const place = `${message.side} ${message.server ?? ''} ${id?.kind === 'scalar' ? id.text : ''}`
    if (message.kind === 'request' && message.method !== undefined) methods.set(place, message.method)
    const isResponse = message.kind === 'result' || message.kind === 'error'
    // The answer to a request of an earlier exchange, which was parked, belongs to the method of both.
    const own = isResponse ? (methods.get(place) ?? exchangeMethod) : undefined
    return {
      ...message,
      method: message.method ?? own,
      index,
      flow: flowOf(message),
      node,
      role: roleOf(message, node),
    }
  })
}

/** Messages that carry others: questions of a server in a result, and their answers in a request. */
const CARRIED: readonly (readonly [part: MessageRole, holder: MessageRole])[] = [
  ['question', 'asks'],
  ['answer', 'retry'],
]

/** Other roles that become each other in translation: `[of the client, of the server]`. */
const TRANSLATED: readonly (readonly [MessageRole, MessageRole])[] = [
  ['retry', 'request'], // a call that is sent again after a link was opened, or to a server that does not know retries
  ['asks', 'response'], // "open this link first" is an error of legacy servers
]

/**
 * Pairs what the client said and heard with what servers heard and said: by role, method and key, then by what the roles
 * become in translation. In the order of time.
 */
export const alignMessages = (messages: readonly ReadMessage[]): readonly MessagePair[] => {
  const open = { client: new Set<ReadMessage>(), server: new Set<ReadMessage>() }
  for (const message of messages) open[message.side].add(message)
  const pairs: MessagePair[] = []
  const join = (client: ReadMessage, server: ReadMessage, isShared = false): void => {
    open.client.delete(client)
    open.server.delete(server)
    pairs.push({ flow: client.flow, client, server, moved: movedParts(client, server, pairs), isShared })
  }

  const joinEach = (isMatch: (client: ReadMessage, server: ReadMessage) => boolean): void => {
    for (const client of open.client) {
      const found = [...open.server].filter(each => each.flow === client.flow && isMatch(client, each))
      const server = chooseMatch(client, found)
      if (server) join(client, server)
    }
  }
  const isMerged = isMergedResponse(messages)
  joinEach(
    (client, server) =>
      client.role === server.role &&
      isSameMethod(client, server) &&
      isInOrder(client, server) &&
      !(client.role === 'response' && isMerged),
  )
  for (const [partRole, holderRole] of CARRIED) {
    const free = [...open.client, ...open.server]
    const holders = free.filter(({ role }) => role === holderRole).sort((a, b) => a.index - b.index)
    for (const part of free.filter(({ role }) => role === partRole)) {
      const others = holders.filter(({ side, flow }) => side !== part.side && flow === part.flow)
      const holder =
        part.direction === 'out'
          ? others.findLast(({ index }) => index < part.index)
          : others.find(({ index }) => index > part.index)
      if (!holder) continue
      const isShared = !open[holder.side].has(holder)
      if (part.side === 'client') join(part, holder, isShared)
      else join(holder, part, isShared)
    }
  }
  for (const [ofClient, ofServer] of TRANSLATED)
    joinEach((client, server) => client.role === ofClient && server.role === ofServer && isSameMethod(client, server))
  for (const client of open.client) pairs.push({ flow: client.flow, client, moved: [], isShared: false })
  for (const server of open.server) pairs.push({ flow: server.flow, server, moved: [], isShared: false })
  return pairs.sort((a, b) => firstIndex(a) - firstIndex(b))
}

/** The message with the same key; otherwise the first, and of several responses the last: a request may be sent again. */
const chooseMatch = (client: ReadMessage, found: readonly ReadMessage[]): ReadMessage | undefined => {
  if (client.role === 'response') return found.at(-1)
  const same = found.find(({ key }) => key !== undefined && key === client.key)
  if (same || client.role !== 'notification') return same ?? found[0]
  return found.find(({ key }) => key === undefined || client.key === undefined) // another key is another notification
}

const HANDSHAKES: ReadonlySet<string | undefined> = new Set(['initialize', 'server/discover'])

/** The handshake of one era is a discovery in the other. */
const isSameMethod = (a: ReadMessage, b: ReadMessage): boolean =>
  a.method === b.method || (HANDSHAKES.has(a.method) && HANDSHAKES.has(b.method))

const LAST = Number.POSITIVE_INFINITY
const firstIndex = ({ client, server }: MessagePair): number => Math.min(client?.index ?? LAST, server?.index ?? LAST)

/** The gateway forwards what it has received: the other order is no translation. */
const isInOrder = (client: ReadMessage, server: ReadMessage): boolean =>
  client.flow === 'toServer' ? client.index < server.index : server.index < client.index

/** Whether several servers have answered the client's request: its answer is made of theirs. */
const isMergedResponse = (messages: readonly ReadMessage[]): boolean => {
  const method = messages.find(({ side, role }) => side === 'client' && role === 'request')?.method
  const servers = messages.filter(message => message.side === 'server' && message.role === 'response')
  return (
    new Set(servers.filter(each => each.method === method || HANDSHAKES.has(each.method)).map(({ server }) => server))
      .size > 1
  )
}

/** Where the parts of a question or of an answer are on the other side. */
const movedParts = (client: ReadMessage, server: ReadMessage, pairs: readonly MessagePair[]): readonly MovedPart[] => {
  const [from, to] = client.flow === 'toServer' ? [client, server] : [server, client]
  if (from.role === to.role) return []
  if (from.role === 'question' && to.role === 'asks') {
    const key = keyOf(to, ['result', 'inputRequests'], from, pairs)
    return key === undefined ? [] : questionParts([], ['result', 'inputRequests', key])
  }
  if (from.role === 'asks' && to.role === 'question') {
    const key = keyOf(from, ['result', 'inputRequests'], to, pairs)
    return key === undefined ? [] : questionParts(['result', 'inputRequests', key], [])
  }
  if (from.role === 'retry' && to.role === 'answer') {
    const key = keyOf(from, ['params', 'inputResponses'], to, pairs)
    return key === undefined ? [] : [{ from: ['params', 'inputResponses', key], to: ['result'] }]
  }
  if (from.role === 'answer' && to.role === 'retry') {
    const key = keyOf(to, ['params', 'inputResponses'], from, pairs)
    return key === undefined ? [] : [{ from: ['result'], to: ['params', 'inputResponses', key] }]
  }
  return []
}

const questionParts = (from: readonly string[], to: readonly string[]): readonly MovedPart[] => [
  { from: [...from, 'method'], to: [...to, 'method'] },
  { from: [...from, 'params'], to: [...to, 'params'] },
]

/** The key of a question or of its answer among several that travel together. Each is taken once. */
const keyOf = (
  holder: ReadMessage,
  path: readonly string[],
  part: ReadMessage,
  pairs: readonly MessagePair[],
): string | undefined => {
  const all = nodeAt(holder.node, path)
  const taken = new Set(
    pairs
      .filter(({ client, server }) => client === holder || server === holder)
      .flatMap(({ moved }) => moved.flatMap(({ from, to }) => [from[path.length], to[path.length]])),
  )
  const free = (all?.kind === 'object' ? all.members : []).filter(({ key }) => !taken.has(key))
  const answer = part.role === 'answer' ? nodeAt(part.node, ['result']) : undefined
  const found =
    free.find(({ value }) => answer !== undefined && isSameNode(value, answer)) ??
    free.find(({ value }) => part.method !== undefined && stringAt(value, ['method']) === part.method) ??
    free[0]
  return found?.key
}
