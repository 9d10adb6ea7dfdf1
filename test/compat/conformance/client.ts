/**
 * A client for the suite to judge: `client.js sdk-v1|sdk-v2 alone|among URL` puts the gateway before the URL and does,
 * as a real client of the gateway, what the scenario in the environment needs. What the suite sees is the gateway.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CallResult, type ClientOptions, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { endChildrenOnExit } from './children.ts'
import { assertCompanions, type Companions, startCompanions, withoutCompanions } from './companions.ts'
import { startDaemon, type Way } from './daemon.ts'

type Script = (client: TestClient) => Promise<unknown>

const call = async (client: TestClient, name: string, given?: Record<string, unknown>): Promise<CallResult> => {
  const result = await client.call(name, given)
  if (result.isError) throw new Error(`${name} failed: ${textOf(result)}`)
  return result
}

const list: Script = client => client.toolNames()

const callAll: Script = async client => {
  for (const name of await client.toolNames()) await call(client, name)
}

const useEverything: Script = async client => {
  await callAll(client)
  for (const uri of await client.resourceUris()) await client.read(uri)
  for (const name of await client.promptNames()) await client.prompt(name)
}

const addNumbers: Script = async client => {
  await client.toolNames()
  const sum = textOf(await call(client, 'add_numbers', { a: 5, b: 3 }))
  if (!sum.includes('8')) throw new Error(`5 and 3 were added to: ${sum}`)
}

/** The arguments to call with are handed over by the suite. */
const callAsTold: Script = async client => {
  await client.toolNames()
  const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') as {
    toolCalls: readonly { name: string; arguments: Record<string, unknown> }[]
  }
  for (const told of toolCalls) await call(client, told.name, told.arguments)
}

const callValid: Script = async client => {
  const names = await client.toolNames()
  if (names.join() !== 'valid_tool') throw new Error(`These tools are shown: ${names}`)
  await call(client, 'valid_tool', { region: 'eu' })
}

const SCRIPTS: Readonly<Record<string, Script>> = {
  initialize: list,
  tools_call: addNumbers,
  'elicitation-sep1034-client-defaults': callAll,
  'sse-retry': callAll,
  'request-metadata': list,
  'sep-2322-client-request-state': callAll,
  'http-standard-headers': useEverything,
  'http-custom-headers': callAsTold,
  'http-invalid-tool-headers': callValid,
  'json-schema-ref-no-deref': list,
}

/** The SDKs fill in the defaults of a form themselves. */
const OPTIONS: Omit<ClientOptions, 'url'> = {
  capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
  answer: ({ method }) => (method === 'elicitation/create' ? { action: 'accept', content: {} } : { roots: [] }),
}

const connect = (kind: string, url: string): Promise<TestClient> =>
  kind === 'sdk-v1' ? connectV1({ ...OPTIONS, url }) : connectV2('SDK v2 modern', { ...OPTIONS, url })

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

const NOBODY: Companions = { entries: {}, close: async () => undefined }
const programs = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

const main = async (kind: string, way: Way, url: string): Promise<void> => {
  const script = SCRIPTS[process.env.MCP_CONFORMANCE_SCENARIO ?? '']
  if (!script) throw new Error('There is no script for this scenario')
  const folder = await mkdtemp(join(tmpdir(), 'conformance-client-'))
  const companions = way === 'among' ? await startCompanions(folder, programs) : NOBODY
  const daemon = await startDaemon(folder, { url }, companions.entries)
  try {
    const client = await connect(kind, daemon.url(way))
    await script(way === 'among' ? amongCompanions(client) : client)
    await client.close()
  } finally {
    await daemon.stop()
    await companions.close()
    await rm(folder, { recursive: true, force: true })
  }
}

endChildrenOnExit()
try {
  const [kind, way, url] = process.argv.slice(2)
  await main(String(kind), way === 'among' ? 'among' : 'alone', String(url))
} catch (error) {
  process.stderr.write(`${error}\n`)
  process.exitCode = 1
}
