import type { Recording } from '../../../admin/api/recorder.ts'
import type { MessagePair, ReadMessage } from './align.ts'
import { docsReference, type Explanation, eraOf, specReference } from './explain.ts'

const ERAS = docsReference('eras.md')

/** Requests that the gateway sends by itself, by method. */
const OWN_REQUESTS: Readonly<Record<string, Explanation>> = {
  initialize: { text: 'The gateway opens a session: a legacy server needs a handshake first.', reference: ERAS },
  'notifications/initialized': { text: 'The gateway ends the handshake.', reference: ERAS },
  'server/discover': {
    text: 'The gateway asks what the server supports, to choose the revision.',
    reference: specReference('server/discover', 'discovery'),
  },
  ping: {
    text: 'The gateway asks whether the server is ready: some offer their tools only after that.',
    reference: ERAS,
  },
  'logging/setLevel': {
    text: 'The gateway sets the log level of the session to what its clients ask for.',
    reference: ERAS,
  },
  'tools/list': {
    text: 'The gateway reads the list: to find the server of a name, or the headers that a tool needs.',
    reference: docsReference('workspaces.md'),
  },
  'notifications/cancelled': {
    text: 'The client has gone or has cancelled: the gateway tells the server.',
    reference: specReference('basic/patterns/cancellation', 'cancellation'),
  },
  'subscriptions/listen': { text: 'The gateway subscribes on behalf of its clients.', reference: ERAS },
  'resources/subscribe': { text: 'The gateway subscribes on behalf of its clients.', reference: ERAS },
}

/** Why a message is on one side only; undefined if nothing certain can be said. */
export const explainSingle = (pair: MessagePair, recording: Recording, pairs: readonly MessagePair[]): Explanation => {
  const message = pair.client ?? pair.server
  if (!message) return UNKNOWN
  return pair.client ? explainClientOnly(message, recording, pairs) : explainServerOnly(message, recording, pairs)
}

const UNKNOWN: Explanation = { text: 'Handled by the gateway.' }

const explainClientOnly = (message: ReadMessage, recording: Recording, pairs: readonly MessagePair[]): Explanation => {
  const { role, kind } = message
  const hasServer = pairs.some(({ server }) => server)
  if (role === 'request' || role === 'retry')
    return hasServer ? UNKNOWN : { text: 'No server was asked: the gateway answers this request itself.' }
  if (role === 'response') {
    if (
      pairs.some(({ client, server }) => !client && server?.role === 'response' && server.method === recording.method)
    )
      return {
        text: 'Made by the gateway from the answers of several servers.',
        reference: docsReference('workspaces.md'),
      }
    if (kind === 'error') return { text: 'An error of the gateway: no answer of a server was forwarded.' }
    return hasServer ? UNKNOWN : { text: 'Answered by the gateway, from its cache or from what it knows.' }
  }
  if (
    message.method === 'notifications/roots/list_changed' &&
    recording.servers.some(each => eraOf(each.revision) === 'modern')
  )
    return { text: 'Not sent on: a modern server asks for roots when it needs them.', reference: ERAS }
  return UNKNOWN
}

const explainServerOnly = (message: ReadMessage, recording: Recording, pairs: readonly MessagePair[]): Explanation => {
  const { role, flow, method, kind } = message
  if (flow === 'toServer') {
    if (role === 'answer')
      return { text: 'The gateway answered this question itself: the client was not asked.', reference: ERAS }
    const isOther =
      method === recording.method && pairs.some(({ client, server }) => client && server?.method === method)
    if (isOther && role === 'request')
      return { text: 'The same request, to another server of the workspace, or once more.' }
    return (method !== undefined && OWN_REQUESTS[method]) || UNKNOWN
  }
  if (role === 'question')
    return { text: 'Not shown to the client: it does not support this question, or was gone.', reference: ERAS }
  if (role === 'notification')
    return { text: 'Not sent on: this client did not ask for it, or it was meant for the gateway.', reference: ERAS }
  if (method === recording.method)
    return { text: 'Part of the answer that the client gets.', reference: docsReference('workspaces.md') }
  return {
    text: kind === 'error' ? 'An error for the gateway’s own request.' : 'The answer to the gateway’s own request.',
  }
}
