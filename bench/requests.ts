import type { Scenario } from './scenarios.ts'

const CLIENT = { name: 'dragoman-bench', version: '1.0.0' }
const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'

/** Stands in every rendered call where the id goes; ids have as many digits, so only these bytes change. */
export const FIRST_ID = 1_000_000

type Headers = Readonly<Record<string, string>>

/** Where requests go. */
export interface Endpoint {
  readonly url: URL
  readonly token?: string | undefined // a bearer token
}

const render = ({ url, token }: Endpoint, method: 'POST' | 'DELETE', headers: Headers, message?: object): Buffer => {
  const body = message ? JSON.stringify({ jsonrpc: '2.0', ...message }) : ''
  const all: Headers = {
    Host: url.host,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...headers,
    'Content-Length': String(Buffer.byteLength(body)),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${url.pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

/** A tools/call of 2026-07-28, with every header and member the revision asks for. */
export const modernCall = (to: Endpoint, scenario: Scenario, name: string = scenario.name): Buffer =>
  render(
    to,
    'POST',
    { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': name },
    {
      id: FIRST_ID,
      method: 'tools/call',
      params: {
        name,
        arguments: scenario.arguments,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': MODERN,
          'io.modelcontextprotocol/clientInfo': CLIENT,
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
  )

export const initialize = (to: Endpoint): Buffer =>
  render(
    to,
    'POST',
    {},
    {
      id: FIRST_ID,
      method: 'initialize',
      params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT },
    },
  )

const sessionHeaders = (session: string | undefined): Headers => ({
  'MCP-Protocol-Version': LEGACY,
  ...(session !== undefined && { 'Mcp-Session-Id': session }),
})

export const initialized = (to: Endpoint, session: string | undefined): Buffer =>
  render(to, 'POST', sessionHeaders(session), { method: 'notifications/initialized' })

/** A tools/call of 2025-11-25, in a session if the server has one. */
export const legacyCall = (to: Endpoint, session: string | undefined, scenario: Scenario): Buffer =>
  render(to, 'POST', sessionHeaders(session), {
    id: FIRST_ID,
    method: 'tools/call',
    params: {
      name: scenario.name,
      arguments: scenario.arguments,
      ...(scenario.progressToken !== undefined && { _meta: { progressToken: scenario.progressToken } }),
    },
  })

export const endSession = (to: Endpoint, session: string): Buffer => render(to, 'DELETE', sessionHeaders(session))
