import { type CallResult, type TestClient, textOf } from '../../support/client.ts'

/** What the suite hands over for one scenario. */
export type ScenarioContext = Readonly<Record<string, unknown>>

/** What a real client of the gateway does in one scenario; it throws where the gateway did not do its part. */
export type Script = (client: TestClient, context: ScenarioContext) => Promise<unknown>

const call = async (client: TestClient, name: string, given?: Record<string, unknown>): Promise<CallResult> => {
  const result = await client.call(name, given)
  if (result.isError) throw new Error(`${name} failed: ${textOf(result)}`)
  return result
}

const list: Script = client => client.toolNames()

const callAll: Script = async client => {
  for (const name of await client.toolNames()) await call(client, name)
}

const useEverything: Script = async (client, context) => {
  await callAll(client, context)
  for (const uri of await client.resourceUris()) await client.read(uri)
  for (const name of await client.promptNames()) await client.prompt(name)
}

const addNumbers: Script = async client => {
  await client.toolNames()
  const sum = textOf(await call(client, 'add_numbers', { a: 5, b: 3 }))
  if (!sum.includes('8')) throw new Error(`5 and 3 were added to: ${sum}`)
}

/** The arguments to call with are handed over by the suite. */
const callAsTold: Script = async (client, { toolCalls }) => {
  await client.toolNames()
  for (const told of toolCalls as readonly { name: string; arguments: Record<string, unknown> }[])
    await call(client, told.name, told.arguments)
}

const callValid: Script = async client => {
  const names = await client.toolNames()
  if (names.join() !== 'valid_tool') throw new Error(`These tools are shown: ${names}`)
  await call(client, 'valid_tool', { region: 'eu' })
}

const LOGIN = 'login'
const TEST_TOOL = 'test-tool'
/** One after the other, as the suite's servers ask for it: of a new authorization server, or with more scopes. */
const LOGINS = 3

/** Logs in while the list says so, then calls every tool. */
const logIn: Script = async client => {
  let names = await client.toolNames()
  if (names.join() !== LOGIN) throw new Error(`Before the login these tools are shown: ${names}`)
  for (let logins = 0; names.includes(LOGIN) && logins < LOGINS; logins++) {
    await call(client, LOGIN)
    names = await client.toolNames()
  }
  if (names.join() !== TEST_TOOL) throw new Error(`After the login these tools are shown: ${names}`)
  await call(client, TEST_TOOL)
}

/** The gateway has an own credential for the server: there is nothing to log in to. */
const useMachineLogin: Script = async client => {
  const names = await client.toolNames()
  if (names.join() !== TEST_TOOL) throw new Error(`These tools are shown: ${names}`)
  await call(client, TEST_TOOL)
}

/** The login must fail, with a text that says why; and so must every later call. */
const refuseLogin =
  (reason: RegExp): Script =>
  async client => {
    const names = await client.toolNames().catch((): string[] => [])
    if (names.includes(TEST_TOOL)) throw new Error('The tools are shown without a login')
    const words = await client
      .call(LOGIN)
      .then(result => `${result.isError ? 'failed' : 'worked'}: ${textOf(result)}`, String)
    if (words.startsWith('worked') || !reason.test(words))
      throw new Error(`The login was not refused with ${reason}: ${words}`)
  }

const AUTH: Readonly<Record<string, Script>> = {
  'resource-mismatch': refuseLogin(/its metadata is for https:\/\/evil\.example\.com\/mcp, not for http/),
  'metadata-issuer-mismatch': refuseLogin(
    /the metadata of http\S+ is for https:\/\/attacker\.example\.com: nothing was sent/,
  ),
  'iss-supported-missing': refuseLogin(/The user did not log in/),
  'iss-wrong-issuer': refuseLogin(/The user did not log in/),
  'iss-unexpected': refuseLogin(/The user did not log in/),
  'iss-normalized': refuseLogin(/The user did not log in/),
  'scope-retry-limit': refuseLogin(/keeps asking for mcp:admin, which was already requested/),
  'client-credentials-basic': useMachineLogin,
  'client-credentials-jwt': useMachineLogin,
  'wif-jwt-bearer': useMachineLogin,
  'enterprise-managed-authorization': useMachineLogin,
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

/** The script of a scenario. */
export const scriptOf = (scenario: string): Script => {
  const [, auth] = /^auth\/(.+)/.exec(scenario) ?? []
  const script = auth === undefined ? SCRIPTS[scenario] : (AUTH[auth] ?? logIn)
  if (!script) throw new Error(`There is no script for ${scenario}`)
  return script
}
