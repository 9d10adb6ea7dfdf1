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
    capabilities: internJson(capabilities),
    info: info && internJson(info),
  }
}

const internedByText = new Map<string, Json>() // most clients say the same of themselves each time
const MOST_INTERNED = 1000
const MOST_INTERNED_BYTES = 512 // of one value

/** An equal value that may outlive the request: a session must not keep its bytes. */
const internJson = (value: Json): Json => {
  if (value.size > MOST_INTERNED_BYTES) return value.compact()
  const text = value.toString()
  const interned = internedByText.get(text)
  if (interned) return interned
  if (internedByText.size >= MOST_INTERNED) internedByText.clear()
  const compact = value.compact()
  internedByText.set(text, compact)
  return compact
}

/** By discover result; weak: does not keep the discover result in memory. */
const lastInitializeResults = new WeakMap<Json, { readonly revision: Revision; readonly result: Json }>()

/** The result of `initialize`, from what `server/discover` says about the workspace: often it is what it said before. */
export const initializeResult = (revision: Revision, discovered: Json): Json => {
  const last = lastInitializeResults.get(discovered)
  if (last?.revision === revision) return last.result
  const result = makeResult(revision, discovered)
  lastInitializeResults.set(discovered, { revision, result })
  return result
}

const makeResult = (revision: Revision, discovered: Json): Json => {
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
