import { NoAnswer, RpcFailure, rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json/json.ts'

/** Settles after a while; keeps no process alive for that. */
export const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms).unref())

/** The outcome of some work at a server; rejects with RpcFailure where that takes too long. */
export const within = <T>(ms: number, work: Promise<T>, server: string): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(silence(server, ms)), ms).unref()
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const silence = (server: string, ms: number): RpcFailure => {
  const text = `Server "${server}" gave no answer within ${ms / 1000} s`
  return new RpcFailure(
    new NoAnswer(rpcError('internal', text, Json.of({ reason: 'upstream_timeout', upstream: server }))),
  )
}
