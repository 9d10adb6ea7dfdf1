import type { EventPublisher } from '../admin/event-feed.ts'
import type { AnswerRecorderQuestion, RecorderQuestion } from '../observe/recorder/shared-recordings.ts'
import type { RecordingSummary } from '../protocol/recording.ts'
import type { Membership } from '../stores/state/state-store.ts'
import { createProcessReader, type ProcessMetrics } from '../telemetry/merge-metrics.ts'
import { type MetricFamily, readProcessMetrics } from '../telemetry/metrics-reader.ts'
import type { MainLink } from '../workers/main-link.ts'
import type { ServerOrder, WorkerLoad } from '../workers/messages.ts'
import type { WorkerProcesses } from '../workers/worker-processes.ts'
import type { Runtime } from './runtime.ts'
import { activitiesOf, METRICS, RECORDINGS, type WorkerRole } from './worker-role.ts'

/** What the processes of a gateway do for each other. */
interface GatewayParts {
  readonly runtime: Pick<Runtime, 'control' | 'hasServer' | 'serverStates' | 'snapshot'>
  readonly members: Pick<Membership, 'self' | 'onRenamed' | 'reportDead'>
  readonly localSecret: string
  readonly load: () => Omit<WorkerLoad, 'idleMs' | 'activity'>
  readonly idleMs: () => number
  readonly drained: () => Promise<void> // when the calls that run now have ended
  readonly readFamilies: () => readonly MetricFamily[]
  readonly events: Pick<EventPublisher, 'hasListeners'>
  readonly recorder: {
    readonly answer: AnswerRecorderQuestion | undefined
    publish(rows: readonly RecordingSummary[], dropped: number): void
  }
  readonly addAudit: (lines: Buffer) => void
}

const REPORT_MS = 1000

/** Starts the workers of this process, or serves as one; does nothing in a process that is alone. */
export const startWorkers = ({ workers, main }: WorkerRole, parts: GatewayParts): void => {
  if (workers) startAsMain(workers, parts)
  if (main) startAsWorker(main, parts)
}

/** Reads the metrics of all workers. */
export const readMetricsOf = (workers: WorkerProcesses) =>
  createProcessReader({
    ask: async () => (await workers.ask(METRICS)) as ReadonlyMap<number, ProcessMetrics>,
    pids: () => workers.pids,
  })

const startAsMain = (workers: WorkerProcesses, parts: GatewayParts): void => {
  const { runtime, members, localSecret, events, recorder, addAudit } = parts
  // Until the store knows it, no other worker can take what the dead one held: leases of workers have no end.
  const onEnded = (replica: string): void =>
    void members.reportDead(replica).catch(() => setTimeout(() => onEnded(replica), REPORT_MS).unref())
  workers.start({
    localSecret,
    file: () => runtime.snapshot.file,
    onEnded,
    onAudit: addAudit,
    isWatched: () => events.hasListeners,
    onRecordings: (rows, dropped) => recorder.publish(rows as readonly RecordingSummary[], dropped),
  })
}

const startAsWorker = (main: MainLink, parts: GatewayParts): void => {
  const { runtime, members, load, idleMs, drained, readFamilies, recorder } = parts

  const onOrder = (order: ServerOrder): void => {
    const { server, action } = order
    if (!runtime.hasServer(server)) return // it was removed meanwhile
    if (action === 'switch') runtime.control.setStopped(server, order.isStopped, drained())
    else if (action === 'restart') runtime.control.restart(server, drained())
    else void runtime.control.probe(server)
  }

  for (const { server, isStopped } of main.facts.stopped) onOrder({ action: 'switch', server, isStopped })
  members.onRenamed(name => main.renamed(name))
  main.ready(members.self, {
    load: () => ({
      ...load(),
      idleMs: idleMs(),
      activity: activitiesOf(runtime.serverStates(), main.isWatched),
    }),
    onOrder,
    answer: (question, about) => {
      if (question === METRICS) return readProcessMetrics(readFamilies())
      return question === RECORDINGS ? recorder.answer?.(about as RecorderQuestion) : undefined
    },
  })
}
