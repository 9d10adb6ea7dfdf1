import type { Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { mintId, openId } from '../wire/sealed-id.ts'
import type { ParkingHome } from './parking/parking.ts'

const PINNED = /^gw3\.([0-9a-f]+)\.(.*)$/s // the sealed id of the replica, and the server's own state

/**
 * Keeps the rounds of a call at one replica. A server that runs in each replica may know only the states that it has made
 * itself, so its `requestState` names the replica, and a retry is sent there.
 */
export const pinRounds =
  (server: string, own: ParkingHome, dispatch: Dispatch): Dispatch =>
  exchange => {
    if (!methodInfo(exchange.method)?.asks) return dispatch(exchange)
    const state = exchange.params.get('requestState')?.asString()
    const [, id, inner = ''] = (state !== undefined && PINNED.exec(state)) || []
    const minted = id === undefined ? undefined : openId(own.keys, 'round', id)
    if (minted?.workspace !== exchange.caller.workspace) return dispatch(withPinnedState(exchange, own))
    const continueHere = (): void =>
      dispatch(withPinnedState({ ...exchange, params: exchange.params.with('requestState', inner) }, own))
    // The server of this replica may know the state, too, if that of the other one is gone.
    if (minted.home === own.self()) continueHere()
    else own.send(minted.home, server, exchange, continueHere)
  }

const withPinnedState = (exchange: Exchange, own: ParkingHome): Exchange => ({
  ...exchange,
  sink: frame => exchange.sink(frame.kind === 'result' ? pinned(frame, exchange, own) : frame),
})

const pinned = (frame: Frame & { kind: 'result' }, { caller }: Exchange, own: ParkingHome): Frame => {
  const state = frame.result.get('requestState')?.asString()
  if (state === undefined) return frame
  const id = mintId(own.keys[0], 'round', { home: own.self(), workspace: caller.workspace })
  return { ...frame, result: frame.result.with('requestState', `gw3.${id}.${state}`) }
}
