import type { EventPublisher } from '../admin/event-feed.ts'
import type { RecorderEndpointsOptions } from '../admin/recorder-endpoints.ts'
import { configuredSecrets } from '../config/configured-secrets.ts'
import { DEFAULT_RECORDER } from '../config/recorder.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { FlightRecorder } from '../observe/recorder/flight-recorder.ts'
import { openRecorder, type RecorderAccess } from '../observe/recorder/recorder-access.ts'
import { createRedactor } from '../observe/recorder/redact.ts'
import { type AnswerRecorderQuestion, joinRecordings, shareRecordings } from '../observe/recorder/shared-recordings.ts'
import type { RecordingSummary } from '../protocol/recording.ts'
import { RECORDINGS, type WorkerRole } from './worker-role.ts'

interface FlightRecorderOptions {
  readonly current: () => Snapshot
  readonly localSecret: () => string | undefined
  readonly loginTokens: () => readonly string[] // that servers were used with last; the same array until there are others
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

/** The secrets that the gateway itself knows: they are hidden wherever they occur. Read again when there are others. */
const createSecretList = ({ current, localSecret, loginTokens }: FlightRecorderOptions): (() => readonly string[]) => {
  let configured: { readonly of: Snapshot; readonly secrets: readonly string[] } | undefined
  let known:
    | { readonly of: Snapshot; readonly tokens: readonly string[]; readonly secrets: readonly string[] }
    | undefined
  return () => {
    const [snapshot, tokens] = [current(), loginTokens()]
    if (known?.of === snapshot && known.tokens === tokens) return known.secrets
    if (configured?.of !== snapshot) configured = { of: snapshot, secrets: configuredSecrets(snapshot) }
    const own = localSecret()
    const secrets = [...(own === undefined ? [] : [own]), ...configured.secrets, ...tokens]
    known = { of: snapshot, tokens, secrets: [...new Set(secrets)] }
    return known.secrets
  }
}
