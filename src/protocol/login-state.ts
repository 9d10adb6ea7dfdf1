import { Json } from '../wire/json/json.ts'
import { JsonSyntaxError } from '../wire/json/scan.ts'

const STATE = /^gw4\.([\w-]+)$/
const MOST_BYTES = 64 * 1024 // of answers that are sent along; without them the server asks again

/**
 * What a modern client sends back when it repeats a call after a login. It is not sealed: it says nothing that the client
 * did not know or choose itself, and grants nothing. It names the server, so that any replica finds it again.
 */
export interface LoginState {
  readonly server?: string | undefined // that wants the login
  readonly round: number // how often the client was asked
  readonly isTool: boolean // the call was for the tool of the stand-in
  readonly link: string // that the client was asked to open
  readonly serverState?: string | undefined // the `requestState` of the server that the call had
  readonly responses?: Json | undefined // the `inputResponses` that the call had
}

export const encodeLoginState = ({ server, round, isTool, link, serverState, responses }: LoginState): string => {
  const kept = responses && responses.size <= MOST_BYTES ? responses : undefined
  const state = Json.of({
    ...(server !== undefined && { server }),
    round,
    link,
    ...(isTool && { isTool }),
    ...(serverState !== undefined && { serverState }),
    ...(kept && { responses: kept }),
  })
  return `gw4.${state.toBytes().toString('base64url')}`
}

/** Undefined if the text is no such state. */
export const decodeLoginState = (text: string): LoginState | undefined => {
  const [, encoded] = STATE.exec(text) ?? []
  if (encoded === undefined) return undefined
  try {
    const state = Json.parse(Buffer.from(encoded, 'base64url'))
    const round = state.get('round')?.asNumber()
    if (round === undefined) return undefined
    return {
      server: state.get('server')?.asString(),
      round,
      isTool: state.get('isTool')?.asBoolean() === true,
      link: state.get('link')?.asString() ?? '',
      serverState: state.get('serverState')?.asString(),
      responses: state.get('responses'),
    }
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined
    throw error
  }
}
