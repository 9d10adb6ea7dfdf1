import type { RequestInfo } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import { rejectUnread, sendJson } from '../http/response.ts'

const PATH = '/.well-known/oauth-protected-resource'
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: use GET')

/** The metadata of the gateway as a protected resource (RFC 9728): at the root, for /mcp, and for each workspace. */
export const createResourceRoutes = (
  documentOf: (request: RequestInfo, path: string) => object | undefined,
): HttpRoutes => {
  const handle: RequestHandler = (request, response, path) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return rejectUnread(request, response, 405, GET_ONLY, { allow: 'GET, HEAD' })
    const document = documentOf(request, path)
    if (document)
      return sendJson(response, 200, [Buffer.from(JSON.stringify(document))], { 'cache-control': 'no-store' })
    rejectUnread(request, response, 404, rpcError('invalidRequest', `Not Found: ${path}`))
  }
  return { [PATH]: handle, [`${PATH}/*`]: handle }
}
