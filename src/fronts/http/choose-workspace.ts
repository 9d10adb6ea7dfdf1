import type { IncomingMessage } from 'node:http'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { readQuery } from './request-query.ts'

/** The workspace of a URL that names none. */
export const DEFAULT_WORKSPACE = 'default'

/** The answer (400) to a URL whose path and query name different workspaces. */
export const TWO_WORKSPACES: RpcError = rpcError(
  'invalidRequest',
  'Bad Request: the URL names two different workspaces; name one, in the path or as ?workspace=NAME',
)

/**
 * The workspace a request is for: the one its path names, else the one of `?workspace=`, else undefined.
 * False if it names two different ones: neither may be served in place of the other.
 */
export const readWorkspace = (
  request: Pick<IncomingMessage, 'url'>,
  inPath: string | undefined,
): string | undefined | false => {
  if (!request.url?.includes('?')) return inPath
  const asked = readQuery(request).getAll('workspace')
  const named = inPath ?? asked[0]
  return asked.every(name => name === named) ? named : false
}
