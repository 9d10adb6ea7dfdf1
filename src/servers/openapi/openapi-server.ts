import { createHash } from 'node:crypto'
import { NoAnswer, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { type DefinedServer, defineServer } from '../define/define.ts'
import { checkArguments } from '../define/schema.ts'
import type { Tool } from '../define/tools.ts'
import { type DocumentOrigin, findApiBase, findOperationBase, type ServerChoice } from './api-base.ts'
import { type ApiAccess, callOperation } from './call-operation.ts'
import { compileInThread } from './compile/compile-in-thread.ts'
import type { DocumentSource } from './file-document.ts'
import {
  type CompiledApi,
  type CompiledTool,
  type CompileSettings,
  type DeclaredLogin,
  DocumentProblem,
} from './plan.ts'

export interface OpenapiOptions {
  readonly name: string // of the server in the configuration
  readonly source: DocumentSource
  readonly settings: CompileSettings
  readonly choice: ServerChoice
  readonly origin: DocumentOrigin
  readonly query: Readonly<Record<string, string>> // sent with every request
  readonly log: Log
  /** Called when the document was read, with the login that it declares and the address of the API. */
  readonly onRead?: (login: DeclaredLogin | undefined) => void
}

/** A REST API as an MCP server: one for all callers, who differ in how they reach the API. */
export interface ApiToolServer {
  /** Reads the document, unless it was read before. Rejects with RpcFailure. */
  open(caller: Caller, access: ApiAccess): Promise<Peer>
  close(): Promise<void>
}

export const openapiServer = (options: OpenapiOptions): ApiToolServer => {
  const { name, source, settings, choice, origin, query, log, onRead } = options
  const accesses = new WeakMap<Caller, ApiAccess>() // by the copy of a caller that one call has
  const loading = new SingleFlight<DefinedServer>()
  let server: DefinedServer | undefined
  let tools: readonly Tool[] = []
  let shown = '' // a hash of the tools as they are listed
  let stopWatching: (() => void) | undefined
  let problem: DocumentProblem | undefined // of the text that was read last
  let isClosed = false

  const toTool = (compiled: CompiledTool, api: CompiledApi, base: string): Tool => {
    const description = Json.parse(Buffer.from(compiled.definition))
    const schema = description.get('inputSchema') ?? Json.empty
    const { needs } = api.security
    let plain: unknown
    return {
      name: compiled.name,
      description,
      schema,
      check: args => {
        plain ??= schema.toValue()
        return checkArguments(plain, args)
      },
      run: (_, call) => {
        const access = accesses.get(call.caller)
        if (!access) throw new Error('the call has no access to the API')
        const own = problemAsError(() => findOperationBase(compiled.plan.server, base, choice, origin))
        return callOperation(compiled.plan, call, access, { base: { url: own, query }, needs })
      },
    }
  }

  /** A document that cannot be used is not compiled again before it changes. */
  const compile = async (text: string): Promise<{ readonly api: CompiledApi; readonly base: string }> => {
    problem = undefined
    try {
      const api = await compileInThread({ text, url: source.url, settings }, source.readPart)
      if (api.tools.length === 0)
        throw new DocumentProblem(
          'has a document without operations, or none that "include" and "exclude" of "api" leave',
        )
      return { api, base: findApiBase(api, choice, origin) }
    } catch (error) {
      if (error instanceof DocumentProblem && error.isLasting) problem = error
      throw error
    }
  }

  /** Reads the document if it has changed. Rejects with RpcFailure, or DocumentProblem. */
  const load = async (): Promise<DefinedServer> => {
    const text = await source.read(!server && !problem)
    if (text === undefined && problem) throw problem
    if (text === undefined && server) return server
    const { api, base } = await compile(text ?? '')
    for (const skipped of api.skipped) log.warn({ skipped }, 'operation of an API is no tool')
    tools = api.tools.map(each => toTool(each, api, base))
    onRead?.(api.security.login)
    if (api.security.needs.length > 0 && !origin.hasCredentials)
      log.info({ needs: api.security.needs }, 'API may want credentials, which the entry does not have')
    log.debug({ tools: tools.length, base }, 'OpenAPI document was read')
    const definitions = hashOf(api)
    if (definitions !== shown) server?.changed.tools()
    shown = definitions
    server ??= defineServer({
      name,
      title: api.title,
      version: api.version,
      ...(api.description !== undefined && { description: api.description, instructions: api.description }),
      tools: () => tools,
    })
    return server
  }

  const reload = (): void => {
    if (isClosed || !server) return
    const { running } = loading
    if (running) return void running.then(reload, reload) // it may have read the text before it changed
    loading.run(load).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error)
      log.warn({ reason }, 'changed OpenAPI document cannot be used: the tools stay as they were')
    })
  }

  const first = async (): Promise<DefinedServer> => {
    try {
      const loaded = await loading.run(load)
      stopWatching ??= isClosed ? undefined : source.watch(reload)
      return loaded
    } catch (error) {
      if (!(error instanceof DocumentProblem)) throw error
      const data = Json.of({ reason: 'upstream_protocol', upstream: name })
      throw new RpcFailure(new NoAnswer(rpcError('internal', `Server "${name}" ${error.message}`, data)))
    }
  }

  return {
    open: async (caller, access) => {
      const opened = server ?? (await first())
      const peer = await opened.open(caller)
      return {
        ...peer,
        dispatch: exchange => {
          const own = { ...exchange.caller }
          accesses.set(own, access)
          peer.dispatch({ ...exchange, caller: own })
        },
      }
    },
    close: async () => {
      isClosed = true
      stopWatching?.()
      await server?.close()
    },
  }
}

const problemAsError = <T>(find: () => T): T => {
  try {
    return find()
  } catch (error) {
    throw error instanceof DocumentProblem ? new Error(`This operation ${error.message}`) : error
  }
}

const hashOf = ({ tools }: CompiledApi): string =>
  createHash('sha256')
    .update(JSON.stringify(tools.map(({ definition }) => definition)))
    .digest('base64')
