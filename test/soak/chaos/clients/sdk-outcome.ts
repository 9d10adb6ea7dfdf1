import type { Outcome } from '../ledger.ts'
import { outcomeOfConnection, reasonOf } from './client.ts'

const TIMEOUT_CODES: readonly unknown[] = [-32001, 'REQUEST_TIMEOUT']
const CLOSED_CODES: readonly unknown[] = [-32000, 'CONNECTION_CLOSED', 'SEND_FAILED']

interface SdkError extends Error {
  readonly code?: unknown
  readonly data?: unknown
}

/** Some errors of the SDKs quote the body of an HTTP response. */
const quoted = (message: string): Parameters<typeof reasonOf>[0] | undefined => {
  const start = message.indexOf('{"jsonrpc"')
  if (start < 0) return undefined
  try {
    return JSON.parse(message.slice(start)).error
  } catch {
    return undefined
  }
}

/** How a call ended that an SDK rejected. */
export const outcomeOfError = (thrown: unknown): Outcome => {
  const error = thrown as SdkError
  const inside = quoted(error.message)
  if (inside) return { kind: 'error', reason: reasonOf(inside) }
  if (TIMEOUT_CODES.includes(error.code) && /timed out/i.test(error.message))
    return { kind: 'silent', why: error.message }
  const failed = outcomeOfConnection(error)
  if (failed) return failed
  if (CLOSED_CODES.includes(error.code)) return { kind: 'cut' }
  if (error.code === 502 || /HTTP 502/.test(error.message)) return { kind: 'refused' } // the balancer found no replica
  if (typeof error.code === 'number')
    return { kind: 'error', reason: reasonOf({ code: error.code, message: error.message, data: error.data }) }
  return { kind: 'error', reason: `${error.name}: ${error.message.slice(0, 80)}` }
}
