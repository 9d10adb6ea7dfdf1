import { hash } from 'node:crypto'
import type { RemoteServer } from '../../config/snapshot.ts'
import { Json } from '../../wire/json/json.ts'
import { type Handshake, readHandshake } from './handshake.ts'

/** A session with a server, as its record describes it. */
export interface StoredServerSession extends SessionOwner {
  readonly sessionId: string // at the server
  readonly handshake: Handshake | undefined // undefined: it was too large to be stored
  readonly isReady: boolean // the server has been sent `notifications/initialized`
  readonly hasStream: boolean // the server has opened a GET stream for it
  readonly attempts: number // to end it at the server, so far
  readonly giveUpAt?: number | undefined // when it is forgotten if its server has not responded; undefined: not tried yet
}

/** Whose session it is, and at which server: what is needed to end it there. */
export interface SessionOwner {
  readonly server: string // its name in the configuration
  readonly url: string // a hash of the server's URL
  readonly workspace: string
  readonly principal: string | undefined
  readonly session: string | undefined // of the only client that uses it; undefined: several do
}

const FORMAT = 1
const MOST_BYTES = 60 * 1024 // a store keeps records of 64 KiB

export const urlHash = (url: string): string => hashOf(JSON.stringify(url))

/** Gives the id of the record of a session, from its owner and its key in the pool. */
export type RecordIds = (owner: string, key: string) => string

/**
 * The ids of the records of one server's sessions: other ones if the server's address or credentials, the caller or its
 * place in the pool are others, so that such a session is never found. Former processes have written the same ids.
 */
export const recordIds = (server: RemoteServer & { readonly name: string }): RecordIds => {
  const { name, url, type, era, pool, allowCrossOriginRedirect = false } = server
  const headers = Object.entries(server.headers).sort(([a], [b]) => (a < b ? -1 : 1))
  const ofServer = JSON.stringify([name, url, type, era, pool ?? 'sticky', allowCrossOriginRedirect, headers])
  const beginning = ofServer.slice(0, -1) // without the bracket: owner and key follow
  return (owner, key) => hashOf(`${beginning},${JSON.stringify(owner)},${JSON.stringify(key)}]`)
}

const hashOf = (text: string): string => hash('sha256', text, 'base64url')

/** The body of a record. A handshake that is too large is left out: such a session can only be ended. */
export const encodeStored = (stored: StoredServerSession): Buffer => {
  const { handshake } = stored
  if (handshake === undefined || handshake.result.size > MOST_BYTES) return encodeWith(stored, undefined)
  const bytes = encodeWith(stored, handshake.result)
  return bytes.length <= MOST_BYTES ? bytes : encodeWith(stored, undefined)
}

const encodeWith = (stored: StoredServerSession, result: Json | undefined): Buffer => {
  const { server, url, workspace, sessionId, isReady, hasStream, attempts, giveUpAt, principal, session } = stored
  const state = { sessionId, isReady, hasStream, attempts, giveUpAt }
  return Json.of({ format: FORMAT, server, url, workspace, ...state, principal, session, result }).toBytes()
}

/** Undefined if the body is not one of `encodeStored`. */
export const decodeStored = (body: Buffer): StoredServerSession | undefined => {
  const json = parse(body)
  const text = (key: string): string | undefined => json?.get(key)?.asString()
  const [server, url, workspace, sessionId] = [text('server'), text('url'), text('workspace'), text('sessionId')]
  if (json?.get('format')?.asNumber() !== FORMAT) return undefined
  if (server === undefined || url === undefined || workspace === undefined || sessionId === undefined) return undefined
  return {
    server,
    url,
    workspace,
    principal: text('principal'),
    session: text('session'),
    sessionId,
    handshake: handshakeOf(json.get('result'), sessionId),
    isReady: json.get('isReady')?.asBoolean() === true,
    hasStream: json.get('hasStream')?.asBoolean() === true,
    attempts: json.get('attempts')?.asNumber() ?? 0,
    giveUpAt: json.get('giveUpAt')?.asNumber(),
  }
}

const parse = (body: Buffer): Json | undefined => {
  try {
    return Json.parse(body)
  } catch {
    return undefined
  }
}

const handshakeOf = (result: Json | undefined, sessionId: string): Handshake | undefined => {
  const handshake = result && readHandshake(result)
  return handshake && !('reason' in handshake) ? { ...handshake, sessionId } : undefined
}
