import type { EventPublisher } from '../admin/event-feed.ts'
import type { RecorderEndpointsOptions } from '../admin/recorder-endpoints.ts'
import { DEFAULT_RECORDER } from '../config/recorder.ts'
import type { Issuer, ServerConfig, Snapshot } from '../config/snapshot.ts'
import { FlightRecorder } from '../observe/recorder/flight-recorder.ts'
import { openRecorder, type RecorderAccess } from '../observe/recorder/recorder-access.ts'
import { createRedactor } from '../observe/recorder/redact.ts'
import { createNameClassifier } from '../observe/recorder/secret-names.ts'
import { type AnswerRecorderQuestion, joinRecordings, shareRecordings } from '../observe/recorder/shared-recordings.ts'
import type { RecordingSummary } from '../protocol/recording.ts'
import { RECORDINGS, type WorkerRole } from './worker-role.ts'

interface FlightRecorderOptions {
  readonly current: () => Snapshot
  readonly localSecret: () => string | undefined
  readonly loginTokens: () => readonly string[] // with which users are logged in to servers
  readonly events: () => EventPublisher
  readonly role: WorkerRole
}

interface GatewayRecorder {
  readonly flight: FlightRecorder
  readonly shown: RecorderEndpointsOptions['recorder'] // what the console uses: that of all processes
  /** Answers the main process; undefined if there is only one process. */
  readonly answer: AnswerRecorderQuestion | undefined
  /** Tells the console of exchanges that this process or another one has recorded. */
  publish(rows: readonly RecordingSummary[], dropped: number): void
  close(): void
}

/** The flight recorder of a gateway. The size of its memory is that of the first configuration. */
export const createFlightRecorder = (
  { recorder: config = DEFAULT_RECORDER }: Snapshot,
  options: FlightRecorderOptions,
): GatewayRecorder => {
  const { events, role } = options
  const { workers, main } = role
  const flight = new FlightRecorder(config, config.enabled)
  const secrets = createSecretList(options)
  const redactor = createRedactor({ names: config.redact, secrets })
  const publish = publishTo(events)
  if (!workers && !main) {
    const access = openRecorder(flight, { redactor, publish, isWatched: () => events().hasListeners })
    return { flight, shown: access, answer: undefined, publish, close: access.close }
  }
  const number = main?.facts.number ?? 1
  const report: typeof publish = (rows, dropped) => {
    const shared = rows.map(own.withOrder)
    if (main) main.reportRecordings(shared, dropped)
    else publish(shared, dropped)
  }
  const isWatched = (): boolean => main?.isWatched ?? events().hasListeners
  const access: RecorderAccess = openRecorder(flight, { redactor, process: number, publish: report, isWatched })
  const own = shareRecordings(flight, access, number)
  const shown = joinRecordings(async question => [
    await own.answer(question),
    ...((await workers?.ask(RECORDINGS, question))?.values() ?? []),
  ])
  return { flight, shown, answer: own.answer, publish, close: access.close }
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
