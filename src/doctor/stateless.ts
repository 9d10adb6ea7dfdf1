import { ERRORS } from '../protocol/errors.ts'
import { META } from '../protocol/meta.ts'
import { MODERN } from '../protocol/revisions.ts'
import { Json, type Plain } from '../wire/json/json.ts'
import type { Deviations } from './deviations.ts'
import { type DoctorReply, describeReply, type ExaminedServer } from './examined-server.ts'
import { FOREIGN, type PostAnswer, type PostedMessage, type ProbeTarget, postMessage } from './http-post.ts'
import type { RuleName } from './rules.ts'

const WHERE = `Streamable HTTP ${MODERN}`
const UNKNOWN_METHOD = 'dragoman/no-such-method'
const UNKNOWN_VERSION = '1999-01-01'

/** The `_meta` that every modern request carries. */
export const modernMeta = (identity: Json, version: string = MODERN): Record<string, Plain> => ({
  [META.protocolVersion]: version,
  [META.clientInfo]: identity,
  [META.clientCapabilities]: {},
})

const NAMED: Readonly<Record<string, string>> = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' }

/** A modern server over HTTP: opened with `server/discover`, or the answer that shows why it is none. */
export const openStateless = async (
  target: ProbeTarget,
  identity: Json,
  deviations: Deviations,
): Promise<{ readonly examined?: ExaminedServer; readonly answer: PostAnswer }> => {
  const client = new StatelessClient(target, identity, deviations)
  const answer = await client.send('server/discover')
  const { reply } = answer
  const versions = reply.kind === 'result' ? reply.result.get('supportedVersions') : undefined
  // A legacy server may answer every method with some result.
  if (reply.kind !== 'result' || !(versions?.elements().some(version => version.isString(MODERN)) ?? false))
    return { answer }
  await checkTransport(client, deviations)
  const examined: ExaminedServer = {
    transport: 'Streamable HTTP',
    revision: MODERN,
    where: WHERE,
    opening: reply.result,
    openingMs: reply.ms,
    request: async (method, params) => (await client.send(method, params)).reply,
    close: async () => {},
  }
  return { examined, answer }
}

class StatelessClient {
  readonly #target: ProbeTarget
  readonly #identity: Json
  readonly #deviations: Deviations
  #lastId = 0

  constructor(target: ProbeTarget, identity: Json, deviations: Deviations) {
    this.#target = target
    this.#identity = identity
    this.#deviations = deviations
  }

  /** A request as a conforming client sends it; `change` replaces headers, undefined removes one. */
  send(
    method: string,
    params: Record<string, Plain> = {},
    change: { readonly headers?: Record<string, string | undefined>; readonly meta?: Record<string, Plain> } = {},
  ): Promise<PostAnswer> {
    const meta = change.meta ?? modernMeta(this.#identity)
    const message: PostedMessage = {
      id: `doctor-${++this.#lastId}`,
      method,
      params: Json.of({ ...params, _meta: meta }),
    }
    const name = params[NAMED[method] ?? '']
    const headers: Record<string, string | undefined> = {
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...change.headers,
    }
    const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined)
    return postMessage(this.#target, message, Object.fromEntries(given), this.#deviations, WHERE)
  }

  unsupportedVersion(): Promise<PostAnswer> {
    return this.send(
      'server/discover',
      {},
      {
        headers: { 'mcp-protocol-version': UNKNOWN_VERSION },
        meta: modernMeta(this.#identity, UNKNOWN_VERSION),
      },
    )
  }
}

interface Expected {
  readonly rule: RuleName
  readonly status: number
  readonly code?: number | undefined
  readonly send: (client: StatelessClient) => Promise<PostAnswer>
}

/** Requests that a conforming server rejects, with the rejection it owes. */
const REJECTIONS: readonly Expected[] = [
  {
    rule: 'unsupported-version',
    status: 400,
    code: ERRORS.unsupportedVersion.code,
    send: client => client.unsupportedVersion(),
  },
  {
    rule: 'unknown-method-status',
    status: 404,
    code: ERRORS.methodNotFound.code,
    send: client => client.send(UNKNOWN_METHOD),
  },
  {
    rule: 'header-required',
    status: 400,
    code: ERRORS.headerMismatch.code,
    send: client => client.send('server/discover', {}, { headers: { 'mcp-method': undefined } }),
  },
  {
    rule: 'header-mismatch',
    status: 400,
    code: ERRORS.headerMismatch.code,
    send: client => client.send('server/discover', {}, { headers: { 'mcp-method': 'tools/list' } }),
  },
  {
    rule: 'meta-required',
    status: 400,
    code: ERRORS.invalidParams.code,
    send: client => client.send('server/discover', {}, { meta: {} }),
  },
  {
    rule: 'origin',
    status: 403,
    send: client => client.send('server/discover', {}, { headers: FOREIGN }),
  },
]

const checkTransport = async (client: StatelessClient, deviations: Deviations): Promise<void> => {
  for (const { rule, status, code, send } of REJECTIONS) {
    const { reply, status: given } = await send(client)
    if (given !== status || (code !== undefined && !hasCode(reply, code)))
      deviations.add(rule, WHERE, `answered ${describeReply(reply)}`)
  }
}

const hasCode = (reply: DoctorReply, code: number): boolean => reply.kind === 'error' && reply.code === code
