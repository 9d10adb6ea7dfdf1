import { ERRORS } from '../protocol/errors.ts'
import { META } from '../protocol/meta.ts'
import { isModern, isRevision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { checkItems, type DoctorList } from './check-items.ts'
import type { Deviations } from './deviations.ts'
import { type DoctorReply, describeReply, type ExaminedServer } from './examined-server.ts'
import type { ServerFinding } from './report.ts'
import type { RuleName } from './rules.ts'

interface ListInfo {
  readonly method: string
  readonly capability: string
}

const LISTS: Readonly<Record<DoctorList, ListInfo>> = {
  tools: { method: 'tools/list', capability: 'tools' },
  prompts: { method: 'prompts/list', capability: 'prompts' },
  resources: { method: 'resources/list', capability: 'resources' },
  resourceTemplates: { method: 'resources/templates/list', capability: 'resources' },
}

const MOST_PAGES = 100
const SAMPLES = 5 // of the latency
const ASSUMED = Json.of({ tools: {} }) // of a server that declares nothing
const ABSENT = 'dragoman-doctor-no-such-name'

/** Uses an opened server as a client would, calling none of its tools, and says what it is. */
export const checkServer = async (examined: ExaminedServer, deviations: Deviations): Promise<ServerFinding> => {
  const { opening, transport, revision, openingMs, hasSession, lacksHandshake } = examined
  const check = new ServerCheck(examined, deviations)
  if (!lacksHandshake) check.handshake()
  const capabilities = lacksHandshake ? ASSUMED : opening.get('capabilities')
  const counts: Record<string, number> = {}
  for (const [list, { method, capability }] of Object.entries(LISTS) as [DoctorList, ListInfo][])
    if (capabilities?.has(capability)) counts[list] = await check.list(list, method)
  await check.rejections(capabilities)
  const info = infoOf(examined)
  return {
    transport,
    revision,
    name: info?.get('name')?.asString(),
    version: info?.get('version')?.asString(),
    instructions: (opening.get('instructions')?.asString() ?? '') !== '',
    sessions: hasSession,
    capabilities: capabilityNames(capabilities),
    counts,
    handshakeMs: openingMs,
    latencyMs: await check.latency(),
  }
}

const isModernRevision = (revision: string): boolean => isRevision(revision) && isModern(revision)

const infoOf = ({ opening, revision }: ExaminedServer): Json | undefined =>
  isModernRevision(revision) ? opening.at('_meta', META.serverInfo) : opening.get('serverInfo')

const capabilityNames = (capabilities: Json | undefined): string[] =>
  (capabilities?.entries() ?? []).flatMap(([name, value]) => [
    name,
    ...value.entries().flatMap(([feature, enabled]) => (enabled.asBoolean() === false ? [] : [`${name}.${feature}`])),
  ])

class ServerCheck {
  readonly #examined: ExaminedServer
  readonly #deviations: Deviations

  constructor(examined: ExaminedServer, deviations: Deviations) {
    this.#examined = examined
    this.#deviations = deviations
  }

  handshake(): void {
    const { opening, revision } = this.#examined
    const info = infoOf(this.#examined)
    const isIncomplete = info?.get('name')?.asString() === undefined || info.get('version')?.asString() === undefined
    if (!opening.get('capabilities')?.isObject)
      this.#add(isModernRevision(revision) ? 'discover-result' : 'initialize-result', 'capabilities is absent')
    if (!isModernRevision(revision)) {
      if (!opening.get('protocolVersion')?.asString()) this.#add('initialize-result', 'protocolVersion is absent')
      if (isIncomplete) this.#add('initialize-result', `serverInfo is ${info?.toString() ?? 'absent'}`)
      return
    }
    if (isIncomplete) this.#add('server-info', `serverInfo is ${info?.toString() ?? 'absent'}`)
    this.#checkResult('server/discover', opening, true)
  }

  /** Reads a list to its end and returns how many items it has. */
  async list(list: DoctorList, method: string): Promise<number> {
    const items: Json[] = []
    const seen = new Set<string>()
    let cursor: string | undefined
    for (let page = 0; page < MOST_PAGES; page++) {
      const reply = await this.#ask(method, cursor === undefined ? {} : { cursor })
      // Servers with resources often have no templates.
      const isAbsent =
        reply.kind === 'error' && reply.code === ERRORS.methodNotFound.code && list === 'resourceTemplates'
      if (isAbsent) return 0
      if (reply.kind !== 'result') {
        this.#add('list-answered', `${method}: ${describeReply(reply)}`)
        break
      }
      this.#checkResult(method, reply.result, true)
      const value = reply.result.get(list)
      if (value?.kind !== 'array') this.#add('list-items', `${method}: ${list} is ${value?.kind ?? 'absent'}`)
      items.push(...(value?.elements() ?? []))
      cursor = reply.result.get('nextCursor')?.asString()
      if (cursor === undefined) break
      if (seen.has(cursor)) {
        this.#add('cursor-repeats', `${method}: the cursor ${JSON.stringify(cursor)} came twice`)
        break
      }
      seen.add(cursor)
    }
    for (const { rule, seen: what } of checkItems(list, items)) this.#add(rule, what)
    return items.length
  }

  /** Asks for what no server has. */
  async rejections(capabilities: Json | undefined): Promise<void> {
    await this.#expect('unknown-method', 'dragoman/no-such-method', {}, isCode(ERRORS.methodNotFound.code))
    if (capabilities?.has('tools')) {
      await this.#expect('unknown-tool', 'tools/call', { name: ABSENT, arguments: {} }, isFailure)
      await this.#expect('cursor-invalid', 'tools/list', { cursor: ABSENT }, isCode(ERRORS.invalidParams.code))
    }
    if (capabilities?.has('prompts'))
      await this.#expect('unknown-prompt', 'prompts/get', { name: ABSENT }, isCode(ERRORS.invalidParams.code))
    if (capabilities?.has('resources'))
      await this.#expect('unknown-resource', 'resources/read', { uri: `dragoman://${ABSENT}` }, isError)
  }

  /** The median time of a request that costs the server nothing. */
  async latency(): Promise<number | undefined> {
    const method = isModernRevision(this.#examined.revision) ? 'server/discover' : 'ping'
    const times: number[] = []
    for (let sample = 0; sample < SAMPLES; sample++) {
      const reply = await this.#ask(method)
      if (reply.kind === 'none') return undefined
      if (reply.kind === 'error' && method === 'ping') {
        this.#add('ping', `answered ${describeReply(reply)}`)
        return undefined
      }
      times.push(reply.ms)
    }
    return times.sort((a, b) => a - b)[Math.floor(SAMPLES / 2)]
  }

  async #ask(method: string, params: Record<string, string> = {}): Promise<DoctorReply> {
    return this.#examined.request(method, params)
  }

  async #expect(
    rule: RuleName,
    method: string,
    params: Parameters<ExaminedServer['request']>[1],
    isRight: (reply: DoctorReply) => boolean,
  ): Promise<void> {
    const reply = await this.#examined.request(method, params)
    if (reply.kind === 'none' && reply.status === undefined) this.#add('answers-requests', `${method}: ${reply.reason}`)
    else if (!isRight(reply)) this.#add(rule, `answered ${describeReply(reply)}`)
  }

  /** What every modern result owes. */
  #checkResult(method: string, result: Json, isCacheable: boolean): void {
    if (!isModernRevision(this.#examined.revision)) return
    if (result.get('resultType')?.asString() === undefined) this.#add('result-type', `${method}: resultType is absent`)
    const ttl = result.get('ttlMs')?.asNumber()
    const scope = result.get('cacheScope')?.asString()
    if (isCacheable && (ttl === undefined || ttl < 0 || (scope !== 'public' && scope !== 'private')))
      this.#add('cache-hints', `${method}: ttlMs is ${ttl ?? 'absent'}, cacheScope is ${scope ?? 'absent'}`)
  }

  #add(rule: RuleName, seen: string): void {
    this.#deviations.add(rule, this.#examined.where, seen)
  }
}

const isError = (reply: DoctorReply): boolean => reply.kind === 'error'

const isCode =
  (code: number) =>
  (reply: DoctorReply): boolean =>
    reply.kind === 'error' && reply.code === code

/** An error, or a result that says so. */
const isFailure = (reply: DoctorReply): boolean =>
  reply.kind === 'error' || (reply.kind === 'result' && reply.result.get('isError')?.asBoolean() === true)
