import { Abort } from '../protocol/cancellation.ts'
import { ERRORS, RpcFailure, rpcError } from '../protocol/errors.ts'
import type { Caller, Dispatch, Peer } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { CursorWalk, sendRequest } from '../protocol/send-request.ts'
import { within } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'

const TIMEOUT_MS = 30_000
const PING_MS = 500 // even a server without `ping` answers it with an error
const MOST_BYTES = 64 * 1024 * 1024

const NO_CLIENT = rpcError(
  'methodNotFound',
  'The gateway compares a list with its pins: no client can answer questions',
)

interface ToolList {
  readonly tools: readonly Json[]
  readonly isComplete: boolean // false: it has too many pages, or a cursor repeats
}

/** Reads all tools of a server, in the name of a caller; rejects after a while. `isFirst`: they become the pins. */
export const readToolList = (peer: Peer, caller: Caller, isFirst: boolean): Promise<ToolList> => {
  const abort = new Abort()
  const release = peer.hold?.()
  const native = { ...caller, revision: peer.revision }
  const query = (method: string, params?: Json): Promise<Json> =>
    sendRequest(rejectQuestions(peer.dispatch), native, method, params, abort)
  const work = async (): Promise<ToolList> => {
    // Some servers have all their tools only after they processed the handshake; an answered ping proves that they have.
    if (isFirst && !isModern(peer.revision)) await within(PING_MS, query('ping').then(ignore, ignore), ignore)
    try {
      return await readPages(params => query('tools/list', params))
    } finally {
      release?.()
    }
  }
  return within<ToolList, never>(TIMEOUT_MS, work(), () => {
    abort.abort({ kind: 'expired' })
    throw new RpcFailure(rpcError('internal', `The server did not list its tools within ${TIMEOUT_MS / 1000} s`))
  })
}

const ignore = (): void => {}

const readPages = async (fetchPage: (params: Json) => Promise<Json>): Promise<ToolList> => {
  const walk = new CursorWalk()
  const tools: Json[] = []
  let params = Json.empty
  let bytes = 0
  for (;;) {
    const page = await fetchPage(params).catch(emptyIfUnknown)
    const listed = page.get('tools')?.elements() ?? []
    bytes += page.size
    if (bytes > MOST_BYTES)
      throw new RpcFailure(rpcError('internal', `The list of tools is larger than ${MOST_BYTES >> 20} MiB`))
    tools.push(...listed)
    const next = walk.next(page)
    if (typeof next === 'string') return { tools, isComplete: next === 'last' }
    params = Json.of(next)
  }
}

/** A server without tools may not know the method. */
const emptyIfUnknown = (error: unknown): Json => {
  if (error instanceof RpcFailure && error.error.code === ERRORS.methodNotFound.code) return Json.empty
  throw error
}

const rejectQuestions =
  (dispatch: Dispatch): Dispatch =>
  exchange =>
    dispatch({
      ...exchange,
      sink: frame =>
        frame.kind === 'question' ? frame.answer({ kind: 'error', error: NO_CLIENT }) : exchange.sink(frame),
    })
