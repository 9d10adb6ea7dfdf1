import type { Revision } from '../../../../protocol/revisions.ts'
import type { JsonObject } from '../../../mcp/messages.ts'

/** A request that can be copied in several forms. */
export interface CopiedRequest {
  readonly url: string // of the target
  readonly revision: Revision
  readonly method: string
  readonly params: JsonObject
  readonly inputSchema?: unknown
  readonly needsToken: boolean
  readonly version: string // of the console
  readonly capabilities: JsonObject // that the client declares
  readonly logLevel: string // of the messages that the client asks for
}

/** The variable that copied commands read the token from: the token itself is not copied. */
export const TOKEN_VARIABLE = 'DRAGOMAN_TOKEN'

/** The arguments of a tool or prompt. */
export const argumentsOf = ({ params }: CopiedRequest): JsonObject => {
  const given = params.arguments
  return typeof given === 'object' && given !== null ? (given as JsonObject) : {}
}

/** The name or URI that the request is about. */
export const subjectOf = ({ params }: CopiedRequest): string => String(params.name ?? params.uri ?? '')
