import { KeyedHash } from '../../std/keyed-hash.ts'
import { Json } from '../../wire/json/json.ts'

const LONGEST_ID = 64 // bytes of a request id within an event id

/** The key of the server-to-client stream. Each home of a session has its own, so that no event id is used twice. */
export const serverStreamKey = (epoch: number): string => `g${epoch}`

/** The key of the stream that answers a POST. It names the request, if there is one and its id is short. */
export const postStreamKey = (epoch: number, count: number, ids: readonly Json[]): string => {
  const [id] = ids
  const text = ids.length === 1 && id ? Buffer.from(id.toString()) : undefined
  const request = text && text.length <= LONGEST_ID ? `r${text.toString('hex')}` : ''
  return `p${epoch}_${count}${request}`
}

/** Where the requests of a stream are stored whose key does not name them. */
export const streamHeadKey = (key: string): string | undefined =>
  key.startsWith('p') && !key.includes('r') ? `h${key}` : undefined

const TAG = 8 // bytes

/**
 * Tags the keys of the streams of a session. An event id of another session, or one that a client has made up, has no valid tag:
 * without it, any id that names a request would look like that of a stream that was lost before it was stored.
 */
export class StreamTags {
  readonly #hashes: readonly KeyedHash[]

  /** The first key makes tags, all of them are accepted. */
  constructor(keys: readonly Buffer[]) {
    this.#hashes = keys.map(key => new KeyedHash(key))
  }

  /** The key with its tag; first the one to use, then those that a former secret would have made. */
  tagged(session: string, key: string): readonly string[] {
    return this.#hashes.map(hash => `${key}s${tagOf(hash, session, key)}`)
  }
}

const tagOf = (hash: KeyedHash, session: string, key: string): string =>
  Buffer.from(hash.digest(`stream\0${session}\0${key}`), 'base64url').toString('hex', 0, TAG)

/** What an event id says about its stream. */
export interface EventId {
  readonly key: string // with its tag
  readonly untagged: string
  readonly epoch: number
  readonly isServerStream: boolean
  readonly request: Json | undefined // the id of the request that the stream answers, if the key names it
  readonly sequence: number
}

const FORM = /^((g(\d{1,15})|p(\d{1,15})_\d{1,15}(?:r((?:[0-9a-f]{2}){1,64}))?)(?:s[0-9a-f]{16})?)\.(\d{1,15})$/

/** Reads an id that `EventLog` wrote; undefined for any other text. */
export const readEventId = (text: string): EventId | undefined => {
  const [, key, untagged, server, post, hex, sequence] = FORM.exec(text) ?? []
  if (key === undefined || untagged === undefined) return undefined
  const request = hex === undefined ? undefined : readRequestId(hex)
  if (hex !== undefined && !request) return undefined
  const isServerStream = server !== undefined
  return { key, untagged, epoch: Number(server ?? post), isServerStream, request, sequence: Number(sequence) }
}

const readRequestId = (hex: string): Json | undefined => {
  try {
    const id = Json.parse(Buffer.from(hex, 'hex'))
    return id.kind === 'string' || id.kind === 'number' ? id : undefined
  } catch {
    return undefined
  }
}
