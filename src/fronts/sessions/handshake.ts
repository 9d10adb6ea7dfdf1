import type { Abort } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isModern, isRevision, NEWEST_LEGACY, type Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { errorPieces, resultPieces } from '../../wire/json-rpc.ts'
import type { FrontContext } from '../http/front-request.ts'
import type { Outcome } from './answers.ts'
import { sizeFault } from './client-limits.ts'
import { lastWord } from './receive.ts'

/** What a legacy client says of itself in `initialize`, with the revision it gets. */
export interface Hello {
  readonly revision: Revision
  readonly capabilities: Json
  readonly info: Json | undefined
}

/** Reads the params of `initialize`; a string says what is wrong with them. */
export const readHello = (params: Json): Hello | string => {
  const wanted = params.get('protocolVersion')?.asString()
  if (wanted === undefined) return '`protocolVersion` must be a string'
  const capabilities = params.get('capabilities') ?? Json.empty
  if (!capabilities.isObject) return '`capabilities` must be an object'
  const info = params.get('clientInfo')
  const tooLarge = sizeFault(capabilities, info)
  if (tooLarge !== undefined) return tooLarge
  return {
    revision: isRevision(wanted) && !isModern(wanted) ? wanted : NEWEST_LEGACY,
    capabilities: capabilities.compact(), // a session must not keep the request alive
    info: info?.compact(),
  }
}

type Answer = (outcome: Outcome, isWelcome: boolean) => void

/** Answers `initialize`, once: by asking the far side who it is. */
export const shakeHands = (house: FrontContext, caller: Caller, id: Json, abort: Abort, answer: Answer): void => {
  let isOpen = true
  const settle = (outcome: Outcome, isWelcome: boolean) => {
    if (!isOpen) return
    isOpen = false
    house.active.delete(abort)
    answer(outcome, isWelcome)
  }
  house.active.add(abort, false)
  abort.onAbort(reason => settle(lastWord(id, reason), false))
  house.dispatch({
    kind: 'request',
    method: 'server/discover',
    params: Json.empty,
    caller,
    signal: abort,
    sink: frame => {
      if (frame.kind === 'failure') settle(errorPieces(id, frame.error), false)
      else if (frame.kind === 'result') settle(resultPieces(id, initializeResult(caller.revision, frame.result)), true)
    },
  })
}

const initializeResult = (revision: Revision, discovered: Json): Json => {
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
