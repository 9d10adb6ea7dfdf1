import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NEVER } from '../protocol/cancellation.ts'
import type { Exchange } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'
import { type AuditedRequest, AuditLines, SessionLabels } from './audit-line.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** The text of a line, written where there is just as much room as it asks for. */
const textOf = (lines: AuditLines, request: AuditedRequest): string => {
  const line = lines.make(request)
  const bytes = Buffer.alloc(line.mostBytes + 7)
  return bytes.toString('utf8', 7, line.writeTo(bytes, 7))
}

const info = (version: string): Json => Json.parse(Buffer.from(`{"name":"editor","version":"${version}"}`))

/** What a line depends on. */
interface Facts {
  readonly method: string
  readonly tool: string | undefined
  readonly server: string | undefined
  readonly principal: string | undefined
  readonly workspace: string
  readonly address: string | undefined
  readonly dialect: string
  readonly version: string | undefined
}

const request = (facts: Partial<Facts>): AuditedRequest => {
  const { method, tool, server, principal, workspace, address, dialect, version } = { ...defaults, ...facts }
  const exchange: Exchange = {
    kind: 'request',
    method,
    params: Json.empty,
    caller: {
      workspace,
      principal,
      revision: '2026-07-28',
      capabilities: Json.empty,
      info: version === undefined ? undefined : info(version),
      headers: new Map(),
    },
    signal: NEVER,
    sink: () => {},
    origin: { id: Json.of(1), address, headers: undefined, initialize: undefined, tap: undefined },
  }
  const target = tool === undefined ? undefined : ({ kind: 'tool', name: tool } as const)
  const rest = {
    outcome: { outcome: 'ok' },
    ms: 1.25,
    bytesIn: 2,
    bytesOut: 3,
    traceId: undefined,
    replica: 'a',
  } as const
  return { exchange, dialect, target, server, ...rest }
}

/** Values of each fact a line depends on; they differ from each other as little as they can. */
const FACTS = {
  method: fc.constantFrom('tools/call', 'tools/list', 'tools/call\necho\na', '10:tools/call 4:echo'),
  tool: fc.constantFrom(undefined, 'echo', 'echo2', '日本', 'a"b\n'),
  server: fc.constantFrom(undefined, 'a', 'b'),
  principal: fc.constantFrom(undefined, 'undefined', 'ann', 'ben', 'zoë 😀', 'ann\nother'),
  workspace: fc.constantFrom('default', 'other'),
  address: fc.constantFrom(undefined, '127.0.0.1', '127.0.0.2'),
  dialect: fc.constantFrom('stateless', 'streamable'),
  version: fc.constantFrom(undefined, '1', '2', 'x'.repeat(300)), // the last one is not remembered
}
const defaults: Facts = {
  method: 'tools/call',
  tool: 'echo',
  server: 'a',
  principal: 'ann',
  workspace: 'default',
  address: undefined,
  dialect: 'stateless',
  version: '1',
}

const withoutTime = (line: string): unknown => ({ ...JSON.parse(line), time: undefined })

describe('the line of a request', () => {
  it('says the same whichever lines were written before', () => {
    const requests = fc.array(fc.record(FACTS), { minLength: 2, maxLength: 12 })
    fc.assert(
      fc.property(requests, list => {
        const lines = new AuditLines(new SessionLabels())
        for (const facts of list) {
          const alone = textOf(new AuditLines(new SessionLabels()), request(facts))
          expect(withoutTime(textOf(lines, request(facts)))).toEqual(withoutTime(alone))
        }
      }),
      { numRuns: 400 },
    )
  })

  it('keeps neither the long methods that clients invent nor the last message', () => {
    const lines = new AuditLines(new SessionLabels())
    collectGarbage()
    const before = process.memoryUsage()
    for (let index = 0; index < 40; index++) {
      const method = JSON.parse(`"${index}${'x'.repeat(2 ** 20)}"`) as string
      expect(textOf(lines, request({ method, tool: undefined })).length).toBeLessThan(2000)
    }
    const writeLast = (): void => {
      const id = Json.parse(Buffer.from(`{"id":7,"text":"${'x'.repeat(2 ** 23)}"}`)).get('id')
      const { exchange, ...rest } = request({})
      expect(textOf(lines, { ...rest, exchange: { ...exchange, origin: { id } } })).toContain('"id":7,')
    }
    writeLast()
    textOf(new AuditLines(new SessionLabels()), request({})) // the stack keeps the arguments of the call before
    collectGarbage()
    collectGarbage() // frees what the first one found
    const after = process.memoryUsage()
    expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(2 ** 22)
    expect(lines.mostBytes).toBeGreaterThan(0)
  })

  it('names the caller, the call and how it ended', () => {
    const line = textOf(new AuditLines(new SessionLabels()), request({ address: '127.0.0.1' }))
    expect(JSON.parse(line)).toMatchObject({
      event: 'request',
      principal: 'ann',
      client: { name: 'editor', version: '1' },
      address: '127.0.0.1',
      workspace: 'default',
      dialect: 'stateless',
      revision: '2026-07-28',
      method: 'tools/call',
      tool: 'echo',
      server: 'a',
      outcome: 'ok',
      ms: 1.3,
      bytesIn: 2,
      bytesOut: 3,
      id: 1,
      replica: 'a',
    })
    expect(line.endsWith('}\n')).toBe(true)
    expect(Math.abs(Date.parse((JSON.parse(line) as { time: string }).time) - Date.now())).toBeLessThan(60_000)
  })
})
