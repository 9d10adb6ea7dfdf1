import { hostname } from 'node:os'
import { type AuditConfig, auditFile } from '../config/audit.ts'
import { ConfigError } from '../config/problems.ts'
import type { ServerConfig, Snapshot } from '../config/snapshot.ts'
import type { TelemetryConfig } from '../config/telemetry.ts'
import { AuditLines, SessionLabels } from '../observe/audit-line.ts'
import {
  createFollower,
  type RequestAudit,
  type RequestRecorders,
  recordNotifications,
} from '../observe/recorded-request.ts'
import type { FlightRecorder } from '../observe/recorder/flight-recorder.ts'
import { RejectionAudit } from '../observe/rejections.ts'
import { RequestTracing } from '../observe/request-tracing.ts'
import type { Admit } from '../protocol/admission.ts'
import type { Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { AuditLog, type AuditTarget, stdoutTarget, type WriteAuditEvent } from '../telemetry/audit-log.ts'
import { ExportHealth } from '../telemetry/export-health.ts'
import type { Log } from '../telemetry/log.ts'
import { MetricExporter } from '../telemetry/metric-exporter.ts'
import type { RequestFollower } from '../telemetry/metrics.ts'
import type { MetricFamily, MetricsSource } from '../telemetry/metrics-reader.ts'
import type { SpanAttributes, TelemetrySource } from '../telemetry/otlp-json.ts'
import { RotatingFile } from '../telemetry/rotating-file.ts'
import { createSampler } from '../telemetry/sampling.ts'
import { SpanExporter } from '../telemetry/span-exporter.ts'
import { Tracer } from '../telemetry/tracer.ts'

interface ObservabilityOptions {
  readonly version: string
  readonly data: string | undefined // the data directory
  readonly replica: () => string // the name of this process among those that share a store
  readonly serverOf: (name: string) => ServerConfig | undefined
  readonly flight: FlightRecorder
  /** Has the main process of the gateway write lines of the audit log; undefined: this process writes them. */
  readonly sendAudit?: ((lines: Buffer) => Promise<void>) | undefined
  readonly log: Log
}

/** The audit log and OpenTelemetry, as far as they are configured. */
export interface Observability {
  readonly writeAudit: WriteAuditEvent | undefined
  /** Adds lines of another process. */
  addAudit(lines: Buffer): void
  readonly counts: Pick<MetricsSource, 'audit' | 'exports'>
  /** Follows the requests of a dialect; the function returns undefined while they are not recorded. */
  followerFor(dialect: string): (exchange: Exchange) => RequestFollower<Frame> | undefined
  /** The same dispatch; notifications of clients are recorded, too. */
  watchNotifications(dialect: string, dispatch: Dispatch): Dispatch
  /** The same admission; rejections are written to the audit log. */
  watchAdmission(admit: Admit): Admit
  /** Sends metrics from now on, if that is configured. */
  exportMetrics(read: () => readonly MetricFamily[]): void
  /** Writes and sends everything that is queued. */
  close(): Promise<void>
}

/** Throws a ConfigError if the audit log cannot be opened. */
export const openObservability = async (
  { audit: auditConfig, telemetry }: Snapshot,
  options: ObservabilityOptions,
): Promise<Observability> => {
  const { log, serverOf, replica, flight } = options
  const labels = new SessionLabels()
  const auditLog = auditConfig && new AuditLog(await openTarget(auditConfig, options), log)
  const writeAudit: WriteAuditEvent | undefined =
    auditLog && ((event, fields) => auditLog.event(event, { ...fields, replica: replica() }))
  const rejections = writeAudit && new RejectionAudit(writeAudit)
  const health = telemetry && new ExportHealth(log)
  const source = () => sourceOf(telemetry, options)
  const spans =
    health && telemetry?.traces
      ? new SpanExporter({ target: telemetry.traces, source, batch: telemetry.batch, health })
      : undefined
  const tracing =
    spans &&
    telemetry &&
    new RequestTracing({
      tracer: new Tracer(createSampler(telemetry.sampler, telemetry.ratio), span => spans.add(span)),
      labels,
      peerOf: server => peerAttributes(serverOf(server)),
      readsMeta: server => READS_META.has(serverOf(server)?.kind),
    })
  const audit: RequestAudit | undefined = auditLog && {
    log: auditLog,
    lines: new AuditLines(labels),
    hasArguments: auditConfig.arguments,
    hasResults: auditConfig.results,
    replica,
    isServer: name => serverOf(name) !== undefined,
  }
  const recorders: RequestRecorders = { audit, tracing, log: log.isLevelEnabled?.('debug') ? log : undefined, flight }
  let metrics: MetricExporter | undefined

  return {
    writeAudit,
    addAudit: lines => {
      for (const line of lines.toString().split('\n')) if (line !== '') auditLog?.add(`${line}\n`)
    },
    counts: { audit: auditLog && (() => auditLog.counts), exports: health?.counts },
    followerFor: dialect => createFollower(recorders, dialect),
    watchNotifications: (dialect, dispatch) => recordNotifications(flight, dialect, dispatch),
    watchAdmission: admit => rejections?.watch(admit) ?? admit,
    exportMetrics: read => {
      if (health && telemetry?.metrics)
        metrics = new MetricExporter({ target: telemetry.metrics, source, everyMs: telemetry.metricsMs, read, health })
    },
    close: async () => {
      rejections?.close()
      await Promise.all([spans?.close(), metrics?.close()])
      await auditLog?.close()
    },
  }
}

const openTarget = async (config: AuditConfig, { data, sendAudit }: ObservabilityOptions): Promise<AuditTarget> => {
  if (sendAudit) return { write: sendAudit, close: async () => {} }
  if (config.to === 'stdout') return stdoutTarget()
  const file = auditFile(config, data)
  const { maxBytes, files } = config
  return RotatingFile.open({ file, maxBytes, files }).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? 'its folder does not exist' : error.message
    throw new ConfigError(`cannot write the audit log ${file}: ${why}; choose another "file" in "audit"`)
  })
}

/** Who sends the telemetry; read for each export, because a replica may get another name. */
const sourceOf = (
  telemetry: TelemetryConfig | undefined,
  { version, replica }: ObservabilityOptions,
): TelemetrySource => ({
  version,
  resource: {
    'service.name': telemetry?.serviceName,
    'service.version': version,
    'service.instance.id': replica() || `${hostname()}-${process.pid}`,
    'host.name': hostname(),
    'process.pid': process.pid,
    'telemetry.sdk.name': 'dragoman',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    ...telemetry?.attributes,
  },
})

const READS_META: ReadonlySet<ServerConfig['kind'] | undefined> = new Set(['process', 'embedded'])

/** Where a server is; without its path, which may hold a secret. */
const peerAttributes = (config: ServerConfig | undefined): SpanAttributes => {
  if (config?.kind === 'process') return { 'network.transport': 'pipe' }
  if ((config?.kind !== 'remote' && config?.kind !== 'openapi') || config.url === undefined) return {}
  const { hostname: address, port, protocol } = new URL(config.url)
  return {
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'server.address': address,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  }
}
