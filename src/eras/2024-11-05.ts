import { createHash } from 'node:crypto'
import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json/json.ts'
import { isBlock, mapCapabilities, mapContent } from './content.ts'
import type { ErrorAsResult, RejectedQuestion, RevisionDifference } from './difference.ts'
import { blocksOf } from './sampling.ts'

/**
 * 2024-11-05 against 2025-03-26: no audio, no progress message, completion without a capability. The capability for
 * completion stays: clients of this revision ignore it, and newer clients over HTTP+SSE use it.
 */
export const difference: RevisionDifference = {
  up: {
    // Servers of this revision complete without declaring it; the first request shows whether they do.
    result: (method, result) =>
      mapCapabilities(method, result, known => (known.has('completions') ? known : known.with('completions', {}))),
    error: asEmptyCompletion,
  },
  down: {
    params: withoutMessage,
    result: (method, result) => mapContent(method, result, audioAsResource),
    notice: withoutMessage,
    question: rejectAudio,
  },
}

function withoutMessage(method: string, params: Json): Json {
  return method === 'notifications/progress' ? params.without('message') : params
}

/** A resource block may hold bytes of any type; a block of an unknown type fails the whole call in the SDKs. */
function audioAsResource(block: Json): Json {
  const data = isBlock(block, 'audio') ? block.get('data') : undefined
  if (!data) return block
  const digest = createHash('sha256')
    .update(data.asString() ?? '')
    .digest('hex')
  const resource = { uri: `audio:${digest}`, mimeType: block.get('mimeType'), blob: data }
  return block.without('data', 'mimeType').with('type', 'resource').with('resource', resource)
}

/** Early releases of the Python SDK end the session if they cannot parse a request. */
function rejectAudio(method: string, params: Json): Json | RejectedQuestion {
  if (method !== 'sampling/createMessage' || !blocksOf(params).some(block => isBlock(block, 'audio'))) return params
  return { rejection: rpcError('invalidParams', 'The client does not support audio in sampling') }
}

function asEmptyCompletion(method: string, error: RpcError): RpcError | ErrorAsResult {
  if (method !== 'completion/complete' || error.code !== ERRORS.methodNotFound.code) return error
  return { result: Json.of({ completion: { values: [], hasMore: false } }) }
}
