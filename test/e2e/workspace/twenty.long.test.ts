import { afterAll, beforeAll } from 'vitest'
import type { Gateway } from '../../../src/app/gateway.ts'
import { killedAndStartedAgain } from './kill-one.ts'
import { startTwenty, startWith, type Victim } from './twenty.ts'

let victims: readonly Victim[]
let gateway: Gateway

beforeAll(async () => {
  victims = await startTwenty()
  const configs = victims.map(({ config }) => config)
  gateway = await startWith(configs, { default: configs.map(({ name }) => name) })
  await gateway.ready
}, 60_000)

afterAll(async () => {
  await gateway?.close()
  for (const victim of victims ?? []) await victim.close()
}, 60_000)

const REMOTE = ['streamable-1', 'streamable-4', 'sdk-v1', 'sdk-v1-sse', 'sdk-v2']
const STARTED = ['sdk-v1-pipe', 'sdk-v2-pipe', 'small']

// twenty.test.ts kills the rest.
killedAndStartedAgain(() => ({ gateway, victims }), [...REMOTE, ...STARTED])
