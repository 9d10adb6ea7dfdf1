import { rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, isRevision, NEWEST_LEGACY, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { findOversizedIdentity } from './client-limits.ts'

/** What a legacy client says about itself in `initialize`, with the revision it gets. */
export type ClientIdentity = Pick<Caller, 'revision' | 'capabilities' | 'info'>

/** Reads the params of `initialize`; returns a string that says what is wrong with them. */
export const readInitialize = (params: Json): ClientIdentity | string => {
  const wanted = params.get('protocolVersion')?.asString()
  if (wanted === undefined) return '`protocolVersion` must be a string'
  const capabilities = params.get('capabilities') ?? Json.empty
  if (!capabilities.isObject) return '`capabilities` must be an object'
  const info = params.get('clientInfo')
  const tooLarge = findOversizedIdentity(capabilities, info)
  if (tooLarge !== undefined) return tooLarge
  return {
    revision: isRevision(wanted) && !isModern(wanted) ? wanted : NEWEST_LEGACY,
    capabilities: capabilities.compact(), // a session must not keep the bytes of the request
    info: info?.compact(),
  }
}

/** The result of `initialize`, from what `server/discover` says about the workspace. */
export const initializeResult = (revision: Revision, discovered: Json): Json => {
  const meta = discovered.get('_meta')
  const rest = meta?.without(META.serverInfo)
  return Json.of({
    protocolVersion: revision,
    capabilities: discovered.get('capabilities') ?? {},
    serverInfo: meta?.get(META.serverInfo) ?? { name: 'dragoman', version: 'unknown' },
    instructions: discovered.get('instructions'),
    _meta: rest && rest.entries().length > 0 ? rest : undefined,
  })
}

/** The error for a second `initialize` in a session. */
export const INITIALIZED = rpcError('invalidRequest', 'This session is already initialized')
