import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { DEFAULT_LIMITS } from '../../config/snapshot.ts'
import { absentPolicy, EVERYTHING } from '../../protocol/policy.ts'
import { type Log, SILENT } from '../../telemetry/log.ts'
import { sendJson } from '../http/response.ts'
import { CallerSeal } from './caller-seal.ts'
import { createForwardedAdmission, openClusterListener } from './cluster-listener.ts'

const KEY = randomBytes(32)
const caller = { workspace: 'default', principal: 'ana', policyName: 'readers', address: '10.0.0.7' }

/** A cluster port that answers with the admission of each request. */
const start = async (log: Log = SILENT) => {
  const listener = await openClusterListener({
    config: { listen: { host: '127.0.0.1', port: 0 }, labels: [] },
    tls: undefined,
    limits: DEFAULT_LIMITS,
    log,
  })
  onTestFinished(() => listener.close())
  const policyOf = (name: string) => (name === 'readers' ? EVERYTHING : undefined)
  const admit = createForwardedAdmission({ seal: new CallerSeal([KEY]), self: () => 'home', policyOf, log })
  const serve = () =>
    listener.serve({
      '/mcp': async (raw, response) => {
        const admission = await admit(raw, 'default', response)
        const status = admission.kind === 'out' ? admission.status : 200
        const headers = admission.kind === 'out' ? admission.headers : undefined
        sendJson(response, status, [Buffer.from(JSON.stringify(admission))], headers)
      },
    })
  const send = (sealed?: string, path = '/mcp') =>
    fetch(`${listener.address}${path}`, sealed === undefined ? {} : { headers: { 'dragoman-caller': sealed } })
  return { listener, serve, send }
}

const sealed = (to = 'home', now = Date.now(), key = KEY, about = caller) => new CallerSeal([key]).seal(about, to, now)

test('a caller that a replica has sealed is admitted, with the policy of this configuration', async () => {
  const { serve, send } = await start()
  serve()
  const answer = await send(sealed())
  expect(answer.headers.get('dragoman-replica')).toBe('home')
  const { principal, policyName, address } = caller
  expect(await answer.json()).toEqual({ kind: 'in', principal, policy: EVERYTHING, policyName, address })
  const unknown = await send(sealed('home', Date.now(), KEY, { ...caller, policyName: 'unknown' }))
  expect(await unknown.json()).toMatchObject({ policy: absentPolicy('unknown') })
})

test('every other request is rejected, and never confirmed', async () => {
  const warnings: unknown[] = []
  const { serve, send } = await start({ ...SILENT, warn: (fields: object) => void warnings.push(fields) } as Log)
  serve()
  const cases: [string | undefined, number][] = [
    [undefined, 403],
    ['', 403],
    ['forged', 403],
    [sealed('home', Date.now(), randomBytes(32)), 403],
    [sealed('home', Date.now(), KEY, { ...caller, workspace: 'other' }), 403],
    [sealed('other'), 421],
    [sealed('home', Date.now() - 10_001), 403],
  ]
  for (const [text, status] of cases) {
    const answer = await send(text)
    expect([answer.status, answer.headers.get('dragoman-replica')]).toEqual([status, null])
  }
  expect(warnings).toHaveLength(5)
  expect(warnings[0]).toMatchObject({ security: true })
  expect(Number((await send(sealed('home', 0))).headers.get('dragoman-clock'))).toBeGreaterThan(Date.now() - 60_000)
  expect((await send(sealed(), '/other')).status).toBe(404)
})

test('before the gateway is ready nothing is served', async () => {
  const { send, listener } = await start()
  expect((await send(sealed())).status).toBe(503)
  expect(listener.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
})
