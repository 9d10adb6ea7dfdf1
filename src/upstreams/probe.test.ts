import { afterEach, describe, expect, it } from 'vitest'
import {
  DISCOVERED,
  failure,
  legacy,
  modern,
  result,
  type Script,
  scriptedServer,
  sendJson,
} from '../../test/support/scripted-server.ts'
import { SILENT } from '../telemetry/log.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'
import { createHttpLink } from './http/http-link.ts'
import { classifyProbe, EraDetector } from './probe.ts'
import type { Answered } from './session/gateway-request.ts'

const response = (body: PlainObject): Answered => ({
  kind: 'response',
  headers: {},
  result: Json.of(body),
})
const error = (code: number, data?: PlainObject): Answered => ({
  kind: 'error',
  code,
  message: 'no',
  data: data && Json.of(data),
})
const refused = (status: number, code?: number, data?: PlainObject): Answered => ({
  kind: 'refused',
  status,
  headers: {},
  error:
    code === undefined
      ? undefined
      : { kind: 'error', id: undefined, error: { code, message: 'no', data: data && Json.of(data) } },
})
const lost = (reason: 'upstream_unreachable' | 'upstream_timeout' | 'upstream_protocol'): Answered => ({
  kind: 'failed',
  failure: { reason, text: 'was lost' },
  resume: undefined,
})

describe('classifying the response to server/discover', () => {
  it.each<[string, Answered, string]>([
    ['a discover result', response(DISCOVERED), 'modern'],
    ['a discover result that lists several', response({ supportedVersions: ['2025-11-25', '2026-07-28'] }), 'modern'],
    ['a discover result of old versions only', response({ supportedVersions: ['2025-06-18'] }), 'legacy'],
    ['a result of another shape', response({ ok: true }), 'legacy'],
    ['-32022 that lists ours', refused(400, -32022, { supported: ['2026-07-28'] }), 'modern'],
    ['-32022 that lists old ones', refused(400, -32022, { supported: ['2025-11-25', '2025-06-18'] }), 'legacy'],
    ['-32022 that lists only newer ones', refused(400, -32022, { supported: ['2027-01-01'] }), 'none'],
    ['-32022 without a list', error(-32022), 'legacy'],
    ['a header mismatch', refused(400, -32020), 'modern'],
    ['a missing capability', error(-32021), 'modern'],
    ['method not found', error(-32601), 'legacy'],
    ['404 with method not found', refused(404, -32601), 'legacy'],
    ['400 with the habit of SDK v1', refused(400, -32000), 'legacy'],
    ['404 with a page', refused(404), 'legacy'],
    ['405', refused(405), 'legacy'],
    ['415', refused(415), 'legacy'],
    ['202', { kind: 'accepted' }, 'legacy'],
    ['200 with a page', lost('upstream_protocol'), 'legacy'],
    ['401', refused(401, -32601), 'none'],
    ['403', refused(403), 'none'],
    ['408', refused(408), 'none'],
    ['429', refused(429), 'none'],
    ['500', refused(500, -32601), 'none'],
    ['503', refused(503), 'none'],
    ['302', refused(302), 'none'],
    ['a refused connection', lost('upstream_unreachable'), 'none'],
    ['silence', lost('upstream_timeout'), 'none'],
  ])('%s', (_, answered, expected) => {
    expect(classifyProbe(answered).kind).toBe(expected)
  })

  it('says which credentials were rejected and what to change', () => {
    const verdict = classifyProbe(refused(401))
    expect(verdict).toMatchObject({ failure: { reason: 'upstream_auth', text: expect.stringContaining('"headers"') } })
  })
})

describe('detecting the era', () => {
  const closing: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  const detectorFor = async (
    script: Script,
    options: { legacyMs?: number; backoffMs?: number; era?: 'modern' } = {},
  ) => {
    const server = await scriptedServer(script)
    const config = { kind: 'remote', url: server.url, type: 'auto', headers: {}, timeoutMs: 1000 } as const
    const link = createHttpLink({ name: 'far', era: 'auto', ...config }, { log: SILENT, answerMs: 300 })
    closing.push(
      () => link.http.close(),
      () => server.close(),
    )
    const { legacyMs = 1000, backoffMs = 400, era = 'auto' } = options
    return { server, detector: new EraDetector(link, { configured: era, legacyMs, backoffMs }) }
  }

  it('probes once, with all headers and _meta that a modern server requires', async () => {
    const { server, detector } = await detectorFor(modern(() => {}))
    expect(await Promise.all([detector.detect(), detector.detect()])).toEqual(['modern', 'modern'])
    expect(await detector.detect()).toBe('modern')
    expect(server.arrivals).toHaveLength(1)
    expect(server.arrivals[0]?.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'server/discover',
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    })
    expect(server.arrivals[0]?.body.params?._meta).toEqual({
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'dragoman', version: '0.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    })
  })

  it('takes a discover result from an event stream that stays open', async () => {
    const { detector } = await detectorFor((arrived, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify(result(arrived.body.id, DISCOVERED))}\n\n`)
    })
    expect(await detector.detect()).toBe('modern')
  })

  it('probes a legacy server again after a while', async () => {
    const { server, detector } = await detectorFor(
      legacy(() => {}),
      { legacyMs: 400 },
    )
    expect(await detector.detect()).toBe('legacy')
    server.become(modern(() => {}))
    expect(await detector.detect()).toBe('legacy')
    await expect.poll(() => detector.detect()).toBe('modern')
  })

  it('sends no probe if the era is configured', async () => {
    const { server, detector } = await detectorFor(() => {}, { era: 'modern' })
    expect(await detector.detect()).toBe('modern')
    expect(server.arrivals).toHaveLength(0)
  })

  it('detects nothing during an outage, fails at once during the backoff, then probes again', async () => {
    const { server, detector } = await detectorFor((_, response) => void response.writeHead(503).end())
    await expect(detector.detect()).rejects.toMatchObject({
      message: 'Server "far" is not available (HTTP 503)',
      reason: 'upstream_unreachable',
    })
    await expect(detector.detect()).rejects.toThrow('HTTP 503')
    expect(server.arrivals).toHaveLength(1)
    server.become(modern(() => {}))
    await expect.poll(() => detector.detect().catch(() => 'down')).toBe('modern')
  })

  it('times out', async () => {
    const { detector } = await detectorFor(() => {})
    await expect(detector.detect()).rejects.toMatchObject({ reason: 'upstream_timeout' })
  })

  it('probes again after the era was forgotten, but not before every call', async () => {
    const { server, detector } = await detectorFor(modern(() => {}))
    await detector.detect()
    detector.forgetEra()
    await detector.detect()
    detector.forgetEra()
    await detector.detect()
    expect(server.arrivals).toHaveLength(2)
  })

  it('never takes 401 for a legacy server', async () => {
    const { server, detector } = await detectorFor((arrived, response) =>
      sendJson(response, failure(arrived.body.id, -32601, 'x'), 401),
    )
    await expect(detector.detect()).rejects.toMatchObject({ reason: 'upstream_auth' })
    expect(server.of('initialize')).toHaveLength(0)
  })
})
