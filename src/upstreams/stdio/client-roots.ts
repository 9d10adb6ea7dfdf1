import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { within } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'

const ROOTS_MS = 5000 // for the client to answer

/** A text that is equal for equal answers to `roots/list`. */
export const rootsIn = (result: Json | undefined): string | undefined =>
  result && JSON.stringify(result.get('roots')?.toValue())

/** Asks the client of a call for its roots, before the call is sent; undefined if it does not tell them. */
export const askForRoots = async (exchange: Exchange): Promise<string | undefined> => {
  const withdrawn = new Abort()
  const stopListening = exchange.signal.onAbort(reason => withdrawn.abort(reason))
  const asked = new Promise<string | undefined>(resolve => {
    withdrawn.onAbort(() => resolve(undefined))
    void deliver(exchange.sink, {
      kind: 'question',
      method: 'roots/list',
      params: Json.empty,
      withdrawn,
      answer: reply => {
        if (reply.kind !== 'progress') resolve(reply.kind === 'result' ? rootsIn(reply.result) : undefined)
      },
    })
  })
  try {
    return await within(ROOTS_MS, asked, () => {
      withdrawn.abort({ kind: 'expired' })
      return undefined
    })
  } finally {
    stopListening()
  }
}
