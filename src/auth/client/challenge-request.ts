import { FetchFailed, type GuardedFetch } from '../fetch/guarded-fetch.ts'
import { type BearerChallenge, readBearerChallenge } from './challenge.ts'

/** A request that every server answers, and that changes nothing. */
const PING = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' })

/** Asks a server without a token, because its challenge may name metadata and scopes; undefined if it has none. */
export const fetchChallenge = async (fetch: GuardedFetch, url: string): Promise<BearerChallenge | undefined> => {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  try {
    const { status, headers: answered } = await fetch(url, { method: 'POST', headers, body: PING, from: url })
    return status === 401 ? readBearerChallenge(answered['www-authenticate']) : undefined
  } catch (error) {
    if (error instanceof FetchFailed) return undefined // what follows tells why
    throw error
  }
}
