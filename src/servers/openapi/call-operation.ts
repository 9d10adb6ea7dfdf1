import type { Signal } from '../../protocol/cancellation.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import { argumentsOf, type Call } from '../define/call.ts'
import { text } from '../define/content.ts'
import type { ToolOutput } from '../define/tools.ts'
import type { OperationPlan } from './plan.ts'
import { type ApiBase, type ApiRequest, buildRequest } from './request/build-request.ts'
import { type ApiReceiver, ApiResponseReader } from './response/api-response-reader.ts'
import { reportEvent } from './response/event-results.ts'
import { readResponse } from './response/read-response.ts'

/** How requests of one caller reach the API. */
export interface ApiAccess {
  /** Resolves when the response has ended; rejects with RpcFailure if there is none. */
  send(request: ApiRequest, receiver: ApiReceiver, signal: Signal): Promise<void>
}

/** What a login would help with is for the gateway to ask; every other failure is for the model to read. */
const LOGIN_REASONS: ReadonlySet<string | undefined> = new Set([
  ...['login_required', 'login_impossible', 'login_unavailable', 'no_credentials'],
])

/** Calls one operation of the API. */
export const callOperation = async (
  plan: OperationPlan,
  call: Call,
  access: ApiAccess,
  { base, needs }: { readonly base: ApiBase; readonly needs: readonly string[] },
): Promise<ToolOutput> => {
  const args = argumentsOf(call.params)
  const request = buildRequest(plan, args, base)
  const collector = new ApiResponseReader((event, count) => reportEvent(call, event, count))
  try {
    await access.send(request, collector, call.signal)
  } catch (error) {
    if (!(error instanceof RpcFailure)) throw error
    if (LOGIN_REASONS.has(error.error.data?.get('reason')?.asString())) throw error
    return { content: [text(error.error.message)], isError: true }
  }
  return readResponse(collector.finish(), { url: request.publicUrl, isJsonOnly: plan.isJsonOnly, needs })
}
