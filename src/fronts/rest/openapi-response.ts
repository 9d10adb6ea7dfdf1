import { Abort } from '../../protocol/cancellation.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { PRIVATE_HEADERS, sendJson } from '../http/response.ts'
import { restCaller } from './call-tool.ts'
import { toolsOf } from './list-tools.ts'
import { type DescribedWorkspace, writeOpenApi } from './openapi.ts'

const PATIENCE_MS = 5000

interface Options {
  readonly version: string
}

/** Answers with the description of every tool in these workspaces; a server that does not answer is named with the reason. */
export const describeWorkspaces = async (
  house: FrontContext,
  visit: FrontRequest,
  workspaces: readonly string[],
  { version }: Options,
): Promise<void> => {
  const abort = new Abort()
  visit.response.on('close', () => abort.abort({ kind: 'gone' }))
  const timer = setTimeout(() => abort.abort({ kind: 'expired' }), PATIENCE_MS)
  const described = await Promise.all(workspaces.map(name => describe(house, { ...visit, workspace: name }, abort)))
  clearTimeout(timer)
  if (visit.response.destroyed) return
  const pieces: Buffer[] = []
  writeOpenApi(described, version).appendTo(pieces)
  sendJson(visit.response, 200, pieces, PRIVATE_HEADERS)
}

const describe = async (house: FrontContext, visit: FrontRequest, signal: Abort): Promise<DescribedWorkspace> => {
  const tools: Json[] = []
  try {
    for await (const tool of toolsOf(house, restCaller(visit), signal)) tools.push(tool)
    return { name: visit.workspace, tools }
  } catch (error) {
    const reason = error instanceof RpcFailure ? error.message : `no answer within ${PATIENCE_MS / 1000} s`
    return { name: visit.workspace, tools, reason }
  }
}
