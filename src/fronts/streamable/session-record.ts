import type { Caller } from '../../protocol/exchange.ts'
import { isLogSeverity, type LogSeverity } from '../../protocol/methods.ts'
import { isModern, isRevision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

const VERSION = 1 // first byte of every record

/** What is stored of a session. */
export interface SessionRecord {
  readonly caller: Pick<Caller, 'workspace' | 'principal' | 'revision' | 'capabilities' | 'info'>
  readonly owner: string
  readonly token: string | undefined
  readonly level: LogSeverity | undefined // undefined: the client has set none
  readonly uris: readonly string[] // subscribed resources
}

export const encodeSession = ({ caller, owner, token, level, uris }: SessionRecord): Buffer => {
  const { workspace, principal, revision, capabilities, info } = caller
  const members = { workspace, principal, revision, capabilities, info, owner, token, level, uris: [...uris] }
  const json = Json.of(members)
  const record = Buffer.allocUnsafe(1 + json.size)
  record[0] = VERSION
  json.copyTo(record, 1)
  return record
}

/** Undefined if the record was written by a version that this one does not know. */
export const decodeSession = (body: Buffer): SessionRecord | undefined => {
  if (body[0] !== VERSION) return undefined
  const json = Json.parse(body.subarray(1))
  const text = (name: string): string | undefined => json.get(name)?.asString()
  const [workspace, revision, owner, level] = [text('workspace'), text('revision'), text('owner'), text('level')]
  if (workspace === undefined || owner === undefined || !isRevision(revision) || isModern(revision)) return undefined
  const capabilities = json.get('capabilities')?.compact() ?? Json.empty
  return {
    caller: { workspace, principal: text('principal'), revision, capabilities, info: json.get('info')?.compact() },
    owner,
    token: text('token'),
    level: isLogSeverity(level) ? level : undefined,
    uris: (json.get('uris')?.elements() ?? []).flatMap(uri => uri.asString() ?? []),
  }
}
