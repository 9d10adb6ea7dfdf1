import type { ProcessServer } from '../config/snapshot.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { isModern, MODERN, type Revision } from '../protocol/revisions.ts'
import type { Child } from '../upstreams/process/child.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { failureOfExit, startChild } from '../upstreams/process/start-child.ts'
import { lastLines } from '../upstreams/process/stderr.ts'
import type { Json, Plain } from '../wire/json/json.ts'
import { ReplyChannel } from './channel.ts'
import type { Deviations } from './deviations.ts'
import { type DoctorReply, type ExaminedServer, quote } from './examined-server.ts'
import { modernMeta } from './stateless.ts'
import { handshakeParams } from './streamable.ts'

/** A program that speaks MCP over stdin and stdout, or the reason why it does not. */
export type OpenedProgram =
  | { readonly kind: 'open'; readonly examined: ExaminedProcess }
  | { readonly kind: 'none'; readonly reason: string; readonly stderr: string }

const MAX_LINE_BYTES = 16 * 1024 * 1024
const EXIT_MS = 3000 // to exit after stdin was closed

/** Starts the programs of one examination; every examined has a process of its own. */
export class ProgramStarter {
  readonly #host = new ProcessHost(1)
  readonly #server: ProcessServer & { readonly name: string }
  readonly #timeoutMs: number
  readonly #deviations: Deviations
  readonly #ending: Promise<unknown>[] = []

  constructor(server: ProcessServer & { readonly name: string }, timeoutMs: number, deviations: Deviations) {
    this.#server = server
    this.#timeoutMs = timeoutMs
    this.#deviations = deviations
  }

  /** Rejects with UpstreamFailure if the program cannot be started. */
  async open(revision: Revision, identity: Json): Promise<OpenedProgram> {
    const deviations = this.#deviations
    let child: Child | undefined
    const channel = new ReplyChannel(
      message => child?.write(Buffer.concat([message, Buffer.from('\n')])),
      this.#timeoutMs,
      deviations,
      `stdio ${revision}`,
    )
    const line = (bytes: Buffer): void => {
      if (looksLikeMessage(bytes)) channel.take(bytes)
      else deviations.add('stdout-only-messages', channel.where, `wrote ${quote(bytes.toString())}`)
    }
    const exited = (exit: Parameters<typeof failureOfExit>[0]): void =>
      channel.end(`the process ${failureOfExit(exit, '', 'upstream_lost').text}`)
    const limits = { host: this.#host, maxBytes: MAX_LINE_BYTES, exitMs: EXIT_MS, termMs: 1000 }
    const started = await startChild(this.#server, limits, { line, exited })
    child = started
    const reply = isModern(revision)
      ? await channel.request('server/discover', { _meta: modernMeta(identity) })
      : await channel.request('initialize', handshakeParams(revision, identity))
    const isOpen = reply.kind === 'result' && (!isModern(revision) || speaksModern(reply.result))
    if (!isOpen) {
      this.#ending.push(stop(started))
      const reason =
        reply.kind === 'error' ? quote(reply.message) : reply.kind === 'none' ? reply.reason : 'no modern result'
      return { kind: 'none', reason, stderr: lastLines(started.stderr.text(), Object.values(this.#server.env)) }
    }
    if (!isModern(revision)) channel.notify(NOTIFICATIONS.initialized)
    const agreed = isModern(revision) ? MODERN : (reply.result.get('protocolVersion')?.asString() ?? revision)
    channel.where = `stdio ${agreed}`
    const examined = new ExaminedProcess(channel, started, agreed, reply.result, reply.ms, {
      deviations,
      meta: isModern(revision) ? { _meta: modernMeta(identity) } : {},
    })
    return { kind: 'open', examined }
  }

  /** Ends a process; the next one may start meanwhile. */
  end(examined: ExaminedProcess): void {
    this.#ending.push(examined.close())
  }

  /** Resolves when every process has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#ending)
  }
}

/** A line that is meant as a message, even if it is a broken one. */
const looksLikeMessage = (line: Buffer): boolean => /^\s*[{[]/.test(line.subarray(0, 20).toString('latin1'))

const speaksModern = (result: Json): boolean =>
  result
    .get('supportedVersions')
    ?.elements()
    .some(version => version.isString(MODERN)) ?? false

/** Closes stdin; true if the process exited by itself. */
const stop = async (child: Child): Promise<boolean> => {
  const begunAt = performance.now()
  await child.stop()
  return performance.now() - begunAt < EXIT_MS
}

interface StdioOptions {
  readonly deviations: Deviations
  readonly meta: Record<string, Plain> // what every request carries
}

/** One process that was opened in one revision. */
export class ExaminedProcess implements ExaminedServer {
  readonly transport = 'stdio' as const
  readonly revision: string
  readonly where: string
  readonly opening: Json
  readonly openingMs: number
  readonly #channel: ReplyChannel
  readonly #child: Child
  readonly #options: StdioOptions

  constructor(
    channel: ReplyChannel,
    child: Child,
    revision: string,
    opening: Json,
    openingMs: number,
    options: StdioOptions,
  ) {
    this.#channel = channel
    this.#child = child
    this.#options = options
    this.revision = revision
    this.where = channel.where
    this.opening = opening
    this.openingMs = openingMs
  }

  request(method: string, params: Record<string, Plain> = {}): Promise<DoctorReply> {
    return this.#channel.request(method, { ...params, ...this.#options.meta })
  }

  async close(): Promise<void> {
    const hasExited = await stop(this.#child)
    if (!hasExited)
      this.#options.deviations.add(
        'exits-with-stdin',
        this.where,
        `it still ran after ${EXIT_MS / 1000} s and was stopped`,
      )
  }
}
