import { existsSync, readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { cacheRoot, install, type Recipe } from '../install.ts'
import { startServerProcess } from '../server-process.ts'

const VERSION = '26.7.3'
const ARTIFACT = `org.keycloak:keycloak-quarkus-dist:${VERSION}:tar.gz`
const FEATURES = 'cimd,resource-indicators'

/** Keycloak of Maven Central, with what Debian's JRE 17 can run. */
const RECIPE: Recipe = {
  name: `keycloak-${VERSION}`,
  toolchain: { command: 'mvn', args: ['--version'] },
  sources: [],
  download: folder => ({
    command: 'sh',
    args: [
      '-c',
      `mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact=${ARTIFACT} -DoutputDirectory="${folder}" &&
       tar -xzf "${folder}"/*.tar.gz -C "${folder}" --strip-components=1 && rm "${folder}"/*.tar.gz`,
    ],
  }),
}

/** A running Keycloak with the realm `corp`: Ada is of the group `engineering`, Ben of none. */
export interface Keycloak {
  readonly issuer: string
  /** An access token for the gateway, by password. */
  tokenOf(person: string): Promise<string>
  stop(): Promise<void>
}

/** 180 MB and a minute to start: it is downloaded only when asked for. */
export const installKeycloak = () => install(RECIPE)

const isInstalled = (): boolean =>
  existsSync(cacheRoot()) && readdirSync(cacheRoot()).some(name => name.startsWith(RECIPE.name))

/** Starts an installed Keycloak; says why where there is none. */
export const startKeycloak = async (audience: string, redirectUri: string): Promise<Keycloak | string> => {
  if (!isInstalled())
    return `Keycloak is not installed (npx tsx test/peers/oauth/install-keycloak.ts fetches ${VERSION})`
  const installed = await installKeycloak()
  if (installed.kind === 'skipped') return installed.reason
  const { folder } = installed
  await mkdir(join(folder, 'data', 'import'), { recursive: true })
  await writeFile(join(folder, 'data', 'import', 'corp.json'), JSON.stringify(realm(audience, redirectUri)))
  const management = await freePort()
  const { port, stop } = await startServerProcess(
    port => ({
      command: join(folder, 'bin', 'kc.sh'),
      args: [
        ...['start-dev', '--http-host=127.0.0.1', `--http-port=${port}`, `--http-management-port=${management}`],
        ...[`--features=${FEATURES}`, '--import-realm', '--db=dev-mem', '--cache=local'],
      ],
    }),
    { startMs: 300_000, signal: 'SIGTERM' }, // its script passes this one on to Java
  )
  const issuer = `http://127.0.0.1:${port}/realms/corp`
  return {
    issuer,
    tokenOf: async person => {
      const response = await fetch(`${issuer}/protocol/openid-connect/token`, {
        method: 'POST',
        body: new URLSearchParams({
          ...{ grant_type: 'password', client_id: 'dragoman', client_secret: 'secret-of-dragoman' },
          ...{ username: person, password: `secret of ${person}`, scope: 'openid' },
        }),
      })
      const { access_token } = (await response.json()) as { access_token?: string }
      if (!access_token) throw new Error(`Keycloak gives no token: ${response.status}`)
      return access_token
    },
    stop,
  }
}

const person = (name: string, groups: readonly string[]): object => ({
  ...{
    username: name,
    enabled: true,
    email: `${name}@example.com`,
    emailVerified: true,
    firstName: name,
    lastName: 'Test',
  },
  credentials: [{ type: 'password', value: `secret of ${name}`, temporary: false }],
  groups,
})

const mapper = (name: string, protocolMapper: string, config: object): object => ({
  ...{ name, protocol: 'openid-connect', protocolMapper },
  config: { 'access.token.claim': 'true', 'id.token.claim': 'true', ...config },
})

/** What an administrator sets up: groups in the tokens, and the audience of the gateway by a mapper. */
const realm = (audience: string, redirectUri: string): object => ({
  ...{ realm: 'corp', enabled: true, sslRequired: 'none' },
  groups: [{ name: 'engineering' }],
  users: [person('ada', ['/engineering']), person('ben', [])],
  clients: [
    {
      ...{ clientId: 'dragoman', secret: 'secret-of-dragoman', enabled: true, directAccessGrantsEnabled: true },
      redirectUris: [redirectUri],
      protocolMappers: [
        mapper('audience', 'oidc-audience-mapper', { 'included.custom.audience': audience }),
        mapper('groups', 'oidc-group-membership-mapper', { 'claim.name': 'groups', 'full.path': 'false' }),
      ],
    },
  ],
})
