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

/** What an event id says about its stream. */
export interface EventId {
  readonly key: string
  readonly epoch: number
  readonly isServerStream: boolean
  readonly request: Json | undefined // the id of the request that the stream answers, if the key names it
  readonly sequence: number
}

const FORM = /^(g(\d{1,15})|p(\d{1,15})_\d{1,15}(?:r((?:[0-9a-f]{2}){1,64}))?)\.(\d{1,15})$/

/** Reads an id that `EventLog` wrote; undefined for any other text. */
export const readEventId = (text: string): EventId | undefined => {
  const [, key, server, post, hex, sequence] = FORM.exec(text) ?? []
  if (key === undefined) return undefined
  const request = hex === undefined ? undefined : readRequestId(hex)
  if (hex !== undefined && !request) return undefined
  const isServerStream = server !== undefined
  return { key, epoch: Number(server ?? post), isServerStream, request, sequence: Number(sequence) }
}

const readRequestId = (hex: string): Json | undefined => {
  try {
    const id = Json.parse(Buffer.from(hex, 'hex'))
    return id.kind === 'string' || id.kind === 'number' ? id : undefined
  } catch {
    return undefined
  }
}
