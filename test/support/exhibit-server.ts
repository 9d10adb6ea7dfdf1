import type { ServerResponse } from 'node:http'
import { type Arrived, openStream, result, type Script, sendJson, tokenOf } from './scripted-server.ts'

/** A modern server whose every text is under the control of a test. */
export interface Exhibit {
  readonly instructions?: string
  readonly title?: string
  readonly info?: Readonly<Record<string, string>> // further members of serverInfo
  readonly tools?: readonly ExhibitTool[]
  readonly prompts?: readonly object[]
  readonly resources?: readonly object[]
  readonly templates?: readonly object[]
  readonly pageSize?: number // of the list of tools
  readonly read?: (uri: string) => object
  readonly prompt?: () => object
}

export interface ExhibitTool {
  readonly definition: { readonly name: string; readonly [member: string]: unknown }
  /** The result; a function answers by itself. */
  readonly run: object | ((call: ExhibitCall) => void)
}

export interface ExhibitCall {
  readonly arrived: Arrived
  readonly response: ServerResponse
  readonly answer: (value: object) => void
  /** An event stream, for notifications before the answer. */
  readonly stream: () => {
    readonly notify: (method: string, params: object) => void
    readonly answer: (value: object) => void
  }
  readonly fail: (code: number, message: string, data?: unknown) => void
  readonly token: unknown
}

const COMPLETE = { resultType: 'complete' }
const CACHED = { ...COMPLETE, ttlMs: 0, cacheScope: 'private' }

export const exhibit = (shown: Exhibit): Script => {
  const { tools = [], prompts = [], resources = [], templates = [], pageSize = 1000 } = shown
  const answers: Readonly<Record<string, (params: Record<string, unknown>) => object>> = {
    'server/discover': () => ({
      ...CACHED,
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
      instructions: shown.instructions ?? 'none',
      _meta: {
        'io.modelcontextprotocol/serverInfo': { name: 'exhibit', title: shown.title, version: '1', ...shown.info },
      },
    }),
    'tools/list': ({ cursor = '0' }) => {
      const [from, end] = [Number(cursor), Number(cursor) + pageSize]
      const page = tools.slice(from, end).map(({ definition }) => definition)
      return { ...CACHED, tools: page, ...(end < tools.length && { nextCursor: String(end) }) }
    },
    'prompts/list': () => ({ ...CACHED, prompts }),
    'resources/list': () => ({ ...CACHED, resources }),
    'resources/templates/list': () => ({ ...CACHED, resourceTemplates: templates }),
    'resources/read': ({ uri }) => ({ ...CACHED, ...shown.read?.(String(uri)) }),
    'prompts/get': () => ({ ...COMPLETE, ...shown.prompt?.() }),
    'completion/complete': () => ({ ...COMPLETE, completion: { values: [shown.title ?? 'x'] } }),
  }
  return (arrived, response) => {
    const { id, method = '', params = {} } = arrived.body
    if (method === 'tools/call') return runTool(tools, arrived, response)
    const answer = answers[method]
    if (id === undefined) return void response.writeHead(202).end()
    if (!answer)
      return sendJson(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }, 404)
    sendJson(response, result(id, answer(params)))
  }
}

const runTool = (tools: readonly ExhibitTool[], arrived: Arrived, response: ServerResponse): void => {
  const { id, params = {} } = arrived.body
  const tool = tools.find(({ definition }) => definition.name === params.name)
  const answer = (value: object): void => sendJson(response, result(id, { ...COMPLETE, ...value }))
  if (!tool) return sendJson(response, { jsonrpc: '2.0', id, error: { code: -32602, message: 'Unknown tool' } })
  if (typeof tool.run !== 'function') return answer(tool.run)
  tool.run({
    arrived,
    response,
    answer,
    token: tokenOf(arrived),
    fail: (code, message, data) => sendJson(response, { jsonrpc: '2.0', id, error: { code, message, data } }),
    stream: () => {
      const events = openStream(response)
      return {
        notify: (method, sent) => events.event({ jsonrpc: '2.0', method, params: sent }),
        answer: value => {
          events.event(result(id, { ...COMPLETE, ...value }))
          events.end()
        },
      }
    },
  })
}
