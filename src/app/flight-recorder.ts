import type { EventPublisher } from '../admin/event-feed.ts'
import { DEFAULT_RECORDER } from '../config/recorder.ts'
import type { Issuer, ServerConfig, Snapshot } from '../config/snapshot.ts'
import { FlightRecorder } from '../observe/recorder/flight-recorder.ts'
import { openRecorder, type RecorderAccess } from '../observe/recorder/recorder-access.ts'
import { createRedactor } from '../observe/recorder/redact.ts'
import { createNameClassifier } from '../observe/recorder/secret-names.ts'
import type { RecordingSummary } from '../protocol/recording.ts'

interface FlightRecorderOptions {
  readonly current: () => Snapshot
  readonly localSecret: () => string | undefined
  readonly loginTokens: () => readonly string[] // with which users are logged in to servers
  readonly events: () => EventPublisher
}

/** The flight recorder of a gateway. The size of its memory is that of the first configuration. */
export const createFlightRecorder = (
  { recorder: config = DEFAULT_RECORDER }: Snapshot,
  options: FlightRecorderOptions,
): { readonly flight: FlightRecorder; readonly access: RecorderAccess } => {
  const flight = new FlightRecorder(config, config.enabled)
  const secrets = createSecretList(options)
  const redactor = createRedactor({ names: config.redact, secrets })
  const publishing = { publish: publishTo(options.events), isWatched: () => options.events().hasListeners }
  return { flight, access: openRecorder(flight, { redactor, ...publishing }) }
}

/** Tells the console of exchanges that have begun or ended. Viewers get events, too, and error messages are for owners. */
const publishTo =
  (events: () => EventPublisher) =>
  (changed: readonly RecordingSummary[], dropped: number): void => {
    if (dropped > 0) events().publish('dropped', { kind: 'recording', count: dropped })
    const rows = changed.map(({ error: _error, ...row }) => row)
    if (rows.length > 0) events().publish('recording', rows)
  }

const TOKENS_MS = 1000
const MOST_TOKENS = 100 // of those used last: each text is searched for all of them

/** The secrets that the gateway itself knows: they are hidden wherever they occur. Read again for another configuration. */
const createSecretList = ({ current, localSecret, loginTokens }: FlightRecorderOptions): (() => readonly string[]) => {
  const kindOfName = createNameClassifier([])
  const isSecret = (name: string): boolean => kindOfName(name) !== 'plain'
  let known: { readonly of: Snapshot; readonly until: number; readonly secrets: readonly string[] } | undefined
  return () => {
    const snapshot = current()
    if (known?.of === snapshot && Date.now() < known.until) return known.secrets
    const secrets = [
      localSecret(),
      ...[...snapshot.servers.values()].flatMap(server => [...secretsOf(server, isSecret), ...oauthSecretsOf(server)]),
      ...[...(snapshot.auth?.issuers?.values() ?? [])].flatMap(issuerSecretsOf),
      ...loginTokens().slice(-MOST_TOKENS),
    ].filter(secret => secret !== undefined)
    known = { of: snapshot, until: Date.now() + TOKENS_MS, secrets: [...new Set(secrets)] }
    return known.secrets
  }
}

const issuerSecretsOf = ({ clientSecret, introspection }: Issuer): (string | undefined)[] => [
  clientSecret,
  introspection?.clientSecret,
]

/** Headers of a remote server, the query of an API, and those variables of a process whose names say so. */
const secretsOf = (server: ServerConfig, isSecret: (name: string) => boolean): string[] => {
  if (server.kind === 'remote' || server.kind === 'openapi')
    return Object.values({ ...server.headers, ...(server.kind === 'openapi' && server.api.query) }).map(value =>
      value.replace(/^(bearer|basic)\s+/i, ''),
    )
  if (server.kind !== 'process') return []
  return Object.entries(server.env ?? {}).flatMap(([name, value]) => (isSecret(name) ? [value] : []))
}

/** The credentials of a client, without the lines around a key. */
const oauthSecretsOf = (server: ServerConfig): string[] => {
  if (!('oauth' in server) || !server.oauth) return []
  const { clientSecret, privateKey } = server.oauth
  const assertion = server.oauth.grant === 'jwt_bearer' ? server.oauth.assertion : undefined
  const key = privateKey?.split('\n').filter(line => !line.startsWith('-----')) ?? []
  return [clientSecret, assertion, ...key].filter(secret => secret !== undefined)
}
