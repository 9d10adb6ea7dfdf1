import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startIssuer } from '../../../support/issuer.ts'
import { startLoginSite } from '../../../support/login/login-site.ts'
import { startOtlpReceiver } from '../../../support/otlp-receiver.ts'
import { legacy, scriptedServer } from '../../../support/scripted-server.ts'
import { start as startV1 } from '../../../support/servers/sdk-v1-server.ts'
import { startTestIssuer } from '../../../support/test-issuer.ts'
import { createToken } from '../../auth/guarded.ts'
import type { StartWay } from './ways.ts'

export type Headers = Readonly<Record<string, string>>

export const newSecret = (name: string): string => `${name}-${randomBytes(12).toString('hex')}`

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

/** What the configuration contains, and what is sent to the gateway. */
const createKnown = () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    pem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    header: newSecret('header'),
    issuer: 'issuer-secret', // what the issuer expects
    introspection: 's&cret', // likewise
    configured: newSecret('configured'),
    machine: newSecret('machine'),
    workload: newSecret('workload'),
    file: newSecret('file'),
    assertion: newSecret('assertion'), // of the issuer, about a person
    reports: newSecret('reports'),
  }
}
type Known = ReturnType<typeof createKnown>

/** Every authorization server and server that the flows need; each is a real one on a port of its own. */
const startPeers = async (known: Known) => {
  const server = await startV1()
  const upstream = server.url
  const scopeOf = ({ params }: { params?: { name?: string } }) => (params?.name === 'echo' ? 'write' : undefined)
  const peers = {
    server,
    collector: await startOtlpReceiver(),
    corp: await startTestIssuer(),
    hub: await startIssuer(),
    echo: await scriptedServer(
      legacy(({ headers: { authorization = '' } }, response) => {
        response.writeHead(500, { 'x-echo': authorization }).end(`refused ${authorization}`)
      }),
    ),
    far: await startLoginSite({ upstream }),
    stepping: await startLoginSite({ upstream, scopeOf }),
    documents: await startLoginSite({ upstream, metadata: { client_id_metadata_document_supported: true } }),
    machines: await startLoginSite({ upstream }),
    loud: await startLoginSite({ upstream, isLoud: true, metadata: POST_ONLY }),
  }
  const { corp } = peers
  corp.state.interfere = response => {
    if (corp.state.tokenRequests.at(-1)?.get('grant_type') !== EXCHANGE) return false
    const assertion = { access_token: known.assertion, token_type: 'N_A', expires_in: 300 }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(assertion))
    return true
  }
  return peers
}
const POST_ONLY = { token_endpoint_auth_methods_supported: ['client_secret_post'] }

type Peers = Awaited<ReturnType<typeof startPeers>>

const configure = (known: Known, peers: Peers, assertionFile: string): object => {
  const { far, stepping, documents, machines, loud, echo, corp, hub, collector } = peers
  const machine = { url: machines.url }
  const client = { clientId: 'gw' }
  const all = [{ where: {}, workspaces: ['*'] }]
  return {
    mcpServers: {
      far: { url: far.url },
      documents: { url: documents.url, oauth: { clientMetadataUrl: 'https://gateway.example/client.json' } },
      stepping: { url: stepping.url, oauth: { ...client, clientSecret: known.configured } },
      loud: { url: loud.url, oauth: { ...client, clientSecret: known.configured } },
      machine: { ...machine, oauth: { grant: 'client_credentials', ...client, clientSecret: known.machine } },
      keyed: { ...machine, oauth: { grant: 'client_credentials', ...client, privateKey: known.pem } },
      workload: { ...machine, oauth: { grant: 'jwt_bearer', assertion: known.workload } },
      file: { ...machine, oauth: { grant: 'jwt_bearer', assertionFile } },
      reports: { ...machine, oauth: { grant: 'id_jag', idp: 'corp', ...client, clientSecret: known.reports } },
      echo: { url: echo.url, headers: { Authorization: `Bearer ${known.header}` } },
    },
    auth: {
      issuers: {
        corp: { url: corp.url, clientId: 'gateway', clientSecret: known.issuer, grants: all },
        hub: {
          ...{ url: hub.url, audience: 'gateway', grants: all },
          introspection: { clientId: 'rs', clientSecret: known.introspection },
        },
      },
      server: { signIn: ['token', 'corp'] },
    },
    audit: true,
    telemetry: { endpoint: collector.url },
    limits: { shutdownMs: 200 },
  }
}

/** A gateway with every kind of login, and the secrets that were used with it. */
export const startWorld = async (start: StartWay) => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-secrets-'))
  const known = createKnown()
  const peers = await startPeers(known)
  const { pem, ...given } = known
  const secrets: string[] = [...Object.values(given), ...pem.split('\n').filter(line => line.length > 40)]
  const file = join(data, 'assertion')
  await writeFile(file, known.file)
  const { headers } = await createToken(data, { principal: 'ada' })
  const env = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_METRIC_EXPORT_INTERVAL: '200' }
  const gateway = await start({ config: configure(known, peers, file), data, env })
  const { origin, owner } = gateway
  const argument = newSecret('argument')
  let stopped: Promise<string> | undefined
  const stop = (): Promise<string> => {
    stopped ??= gateway.stop()
    return stopped
  }

  const bearer = (token: string): Headers => {
    secrets.push(token)
    return { authorization: `Bearer ${token}` }
  }
  const request = async (method: string, path: string, sent: Headers, body?: object) => {
    const response = await fetch(origin + path, {
      method,
      headers: { 'content-type': 'application/json', ...sent },
      ...(body && { body: JSON.stringify(body) }),
    })
    for (const cookie of response.headers.getSetCookie()) secrets.push(/=([^;]*)/.exec(cookie)?.[1] ?? '')
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
  }

  return {
    origin,
    data,
    known,
    peers,
    secrets,
    bearer,
    request,
    ada: bearer(headers.authorization.replace('Bearer ', '')),
    owner: bearer(owner),
    argument,
    /** Calls a tool over REST. */
    act: (sent: Headers, tool: string) =>
      request('POST', `/actions/default/${tool}`, sent, { message: argument, text: argument }),
    /** Sends a form as a client of the embedded authorization server does. */
    post: async (path: string, form: Headers): Promise<Readonly<Record<string, string>>> => {
      const response = await fetch(origin + path, { method: 'POST', body: new URLSearchParams(form) })
      const text = await response.text()
      return text === '' ? {} : JSON.parse(text)
    },
    /** Ends the gateway; everything that it has logged and printed. */
    stop,
    close: async (): Promise<void> => {
      await stop()
      for (const peer of Object.values(peers)) await peer.close()
      await rm(data, { recursive: true, force: true })
    },
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>
