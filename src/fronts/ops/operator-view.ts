import type { IncomingMessage } from 'node:http'
import type { Admission, RequestInfo } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import { hostName, isLoopback } from '../http/guard.ts'

/** What a request may see of the whole gateway; `figures` are names and numbers, without what servers wrote. */
export type OperatorView = { readonly kind: 'all' } | { readonly kind: 'figures' } | (Admission & { kind: 'out' })

interface Options {
  readonly exposeMetrics: boolean
  /** Judges the token of a request; undefined where no token is needed. */
  readonly admitOperator: (knock: RequestInfo) => Admission | undefined
}

const HIDDEN: OperatorView = {
  kind: 'out',
  status: 404,
  error: rpcError(
    'invalidRequest',
    'Not Found: figures are shown to callers on this machine and to tokens for every workspace, unless listen.exposeMetrics is true',
  ),
}

/** Once tokens are on, names and reasons need one; before that, a caller on this machine that no proxy stands before. */
export const createOperatorView =
  ({ exposeMetrics, admitOperator }: Options) =>
  (request: IncomingMessage): OperatorView => {
    const admission = admitOperator(request)
    if (admission?.kind === 'in') return { kind: 'all' }
    if (!admission && (exposeMetrics || isLocal(request))) return { kind: 'all' }
    if (exposeMetrics) return { kind: 'figures' }
    return admission ?? HIDDEN
  }

const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** A proxy on this machine connects from loopback too: it adds a header, or keeps the name it was called by. */
const isLocal = ({ headers, socket }: IncomingMessage): boolean =>
  isLoopback((socket.remoteAddress ?? '').replace(/^::ffff:/i, '')) &&
  isLoopback(hostName(headers.host ?? '') ?? '') &&
  !PROXY_HEADERS.some(name => headers[name] !== undefined)
