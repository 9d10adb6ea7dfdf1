import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { startDocumentApi } from '../../support/document-api.ts'
import { NoSample, sampleOf } from '../../support/sample-arguments.ts'

// Public documents are not part of this repository. JSON files, separated by spaces: GitHub's of 3.0 is in the npm package
// @octokit/openapi, Discord's of 3.1 in the repository discord/discord-api-spec, Slack's of 2.0 in slackapi/slack-api-specs.
const FILES = (process.env.OPENAPI_DOCUMENTS ?? '').split(/\s+/).filter(Boolean)
if (FILES.length === 0) console.warn('skipped: real OpenAPI documents (set OPENAPI_DOCUMENTS to paths of JSON files)')

const MOST_CALLS = Number(process.env.OPENAPI_CALLS ?? 2000)

interface ListedTool {
  readonly name: string
  readonly inputSchema: { readonly properties?: Record<string, unknown>; readonly required?: readonly string[] }
}

describe.skipIf(FILES.length === 0)('a public document', () => {
  it.each(FILES)('%s becomes tools whose calls are valid requests', { timeout: 300_000 }, async file => {
    const document = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, object>>
    const api = await startDocumentApi(document)
    const entry = { openapi: file, api: { baseUrl: api.url } }
    const snapshot = await loadConfig({ value: { mcpServers: { api: entry } }, env: {}, flags: { port: 0 } })
    const gateway = await startGateway(
      { ...snapshot, limits: { ...snapshot.limits, shutdownMs: 200 } },
      { log: SILENT },
    )
    try {
      await gateway.ready
      const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
        const init = { 'content-type': 'application/json', accept: 'application/json', ...headers }
        const response = await fetch(`${gateway.origin}${path}`, {
          method: 'POST',
          headers: init,
          body: JSON.stringify(body),
        })
        return (await response.json()) as {
          result?: { tools?: ListedTool[]; nextCursor?: string }
          isError?: boolean
          content?: unknown
        }
      }
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      }
      const accept = 'application/json, text/event-stream'
      const headers = { accept, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }
      const tools = (await post('/mcp', list, headers)).result?.tools ?? []
      const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options']
      const operations = Object.values(document.paths ?? {}).flatMap(item =>
        Object.keys(item).filter(method => METHODS.includes(method)),
      )
      const step = Math.max(1, Math.ceil(tools.length / MOST_CALLS))
      const called = tools.filter((_, at) => at % step === 0)
      const failures: string[] = []
      let unsampled = 0
      for (const { name, inputSchema } of called) {
        const { body } = inputSchema.properties ?? {}
        const required = [...(inputSchema.required ?? []), ...(body === undefined ? [] : ['body'])]
        const args = sampleOrNone({ ...inputSchema, required: [...new Set(required)] }, inputSchema)
        if (!args) {
          unsampled++
          continue
        }
        const result = await post(`/actions/default/${encodeURIComponent(name)}`, args)
        if (!result.content || result.isError) failures.push(`${name}: ${JSON.stringify(result).slice(0, 300)}`)
      }
      console.log(
        `${basename(file)}: ${operations.length} operations, ${tools.length} tools, ${called.length - unsampled} called (${unsampled} need a value that no sample is made for), ${api.arrivals.length} requests, ${api.problems.length} invalid, ${failures.length} failed`,
      )
      expect(tools.length).toBe(operations.length)
      expect(tools.filter(({ name }) => !/^[A-Za-z0-9_-]{1,64}$/.test(name))).toEqual([])
      expect(failures).toEqual([])
      expect(api.problems).toEqual([])
    } finally {
      await gateway.close()
      await api.close()
    }
  })
})

/** Arguments for a tool; undefined if one must match a pattern that no sample is made for. */
const sampleOrNone = (schema: object, root: object): object | undefined => {
  try {
    return sampleOf(schema, root) as object
  } catch (error) {
    if (error instanceof NoSample) return undefined
    throw error
  }
}
