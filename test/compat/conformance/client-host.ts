/**
 * The client that the suite judges: `client-host.js sdk-v1|sdk-v2 alone|among` takes scenarios from client-command.mjs, puts
 * a gateway of its own before the server of each, and does with a real client what the scenario needs. What the suite sees is
 * the gateway. One process serves all scenarios, because starting three for each takes most of the time.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { ClientOptions, TestClient } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { createBrowser } from '../../support/oauth/browser.ts'
import { byIssuer, grantAccess } from '../../support/oauth/gateway-login.ts'
import { entryOf } from './client-entries.ts'
import { type ScenarioContext, scriptOf } from './client-scripts.ts'
import { assertCompanions, type Companions, startCompanions, withoutCompanions } from './companions.ts'
import { type Way, workspacesOf } from './daemon.ts'
import { startSignInStation } from './sign-in-station.ts'

/** One scenario as the suite has started it. */
interface Task {
  readonly scenario: string
  readonly url: string
  readonly context: ScenarioContext
}

/** The built package, whose types are not there before it is built. */
interface Package {
  startGateway(options: object): Promise<{ readonly url: string; close(): Promise<void> }>
}

const AT_ONCE = 4
const DIST = new URL('../../../dist/index.mjs', import.meta.url).href
const programs = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** The SDKs fill in the defaults of a form themselves. Links are opened as a person would. */
const clientOptions = (url: string, token?: string): ClientOptions => {
  const browser = createBrowser()
  return {
    url,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    capabilities: { elicitation: { form: { applyDefaults: true }, url: {} }, sampling: {}, roots: {} },
    answer: async ({ method, params }) => {
      if (method !== 'elicitation/create') return { roots: [] }
      if (params.mode !== 'url') return { action: 'accept', content: {} }
      const { status } = await browser.open(String(params.url))
      return { action: status === 200 ? 'accept' : 'cancel' }
    },
  }
}

const connect = (kind: string, options: ClientOptions): Promise<TestClient> =>
  kind === 'sdk-v1' ? connectV1(options) : connectV2('SDK v2 modern', options)

/** The same client, whose lists show only what the suite's server has, once everybody else has been seen there. */
const amongCompanions = (client: TestClient): TestClient => ({
  ...client,
  toolNames: async () => {
    const names = await client.toolNames()
    assertCompanions(names)
    return withoutCompanions(names)
  },
  promptNames: async () => withoutCompanions(await client.promptNames()),
  resourceUris: async () => withoutCompanions(await client.resourceUris()),
})

const runTask = async ({ scenario, url, context }: Task, kind: string, way: Way, others: Companions): Promise<void> => {
  const script = scriptOf(scenario)
  const { startGateway } = (await import(DIST)) as Package
  // Identity assertions need a caller who has signed in.
  const signIn = 'idp_issuer' in context ? await startSignInStation(context) : undefined
  const config = {
    ...(signIn && { auth: signIn.auth }),
    mcpServers: { server: entryOf(scenario, url, context), ...others.entries },
    workspaces: workspacesOf(Object.keys(others.entries)),
    limits: { shutdownMs: 500 },
  }
  const gateway = await startGateway({ config, port: 0 })
  const { origin } = new URL(gateway.url)
  try {
    const granted = signIn && (await grantAccess(origin, byIssuer('corp')))
    const client = await connect(kind, clientOptions(`${origin}/mcp/${way}`, granted?.tokens.access_token))
    await script(way === 'among' ? amongCompanions(client) : client, context)
    await client.close()
  } finally {
    await gateway.close()
    await signIn?.close()
  }
}

/** Runs at most so many at once; the suite starts them all, and some measure time. */
const createQueue = (atOnce: number): (<Value>(run: () => Promise<Value>) => Promise<Value>) => {
  const waiting: (() => void)[] = []
  let running = 0
  return async run => {
    if (running >= atOnce) await new Promise<void>(resolve => waiting.push(resolve))
    running++
    try {
      return await run()
    } finally {
      running--
      waiting.shift()?.()
    }
  }
}

const NO_COMPANIONS: Companions = { entries: {}, close: async () => undefined }

const main = async (kind: string, way: Way): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), 'conformance-client-'))
  const companions = way === 'among' ? await startCompanions(folder, programs) : NO_COMPANIONS
  const enqueue = createQueue(AT_ONCE)
  const server = createServer(async (incoming, outgoing) => {
    const task = JSON.parse(await text(incoming)) as Task
    const words = await enqueue(() => runTask(task, kind, way, companions)).then(
      () => '',
      error => String(error),
    )
    outgoing.end(words)
  }).listen(0, '127.0.0.1')
  server.once('listening', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`))
  process.once('SIGTERM', async () => {
    await companions.close()
    await rm(folder, { recursive: true, force: true })
    process.exit()
  })
}

const [kind, way] = process.argv.slice(2)
await main(String(kind), way === 'among' ? 'among' : 'alone')
