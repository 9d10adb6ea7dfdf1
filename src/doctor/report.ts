import type { Deviation } from './deviations.ts'

export type DoctorTransport = 'Streamable HTTP' | 'HTTP+SSE' | 'stdio'

/** What was found about one transport. */
export interface TransportFinding {
  readonly transport: DoctorTransport
  readonly revisions: readonly string[] // newest first; empty: the transport does not work
  readonly reason?: string | undefined // why it does not
}

/** What a server demands before it answers. */
export interface AuthenticationFinding {
  readonly status: number
  readonly challenge: string | undefined // the WWW-Authenticate header
  readonly metadata?: string | undefined // the address of the protected resource metadata
  readonly authorizationServers?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
}

/** What the server says about itself in the newest revision it speaks. */
export interface ServerFinding {
  readonly transport: DoctorTransport
  readonly revision: string
  readonly name: string | undefined
  readonly version: string | undefined
  readonly instructions: boolean
  readonly sessions?: boolean | undefined // Streamable HTTP of the legacy era
  readonly capabilities: readonly string[] // `tools`, `tools.listChanged`
  readonly counts: Readonly<Record<string, number>>
  readonly handshakeMs: number
  readonly latencyMs: number | undefined // the median of a few requests
}

/** The result of `dragoman doctor`. */
export interface DoctorReport {
  readonly target: string
  readonly verdict: 'conforms' | 'deviates' | 'login-required' | 'not-mcp' | 'unreachable'
  readonly failure?: string | undefined // why the server could not be reached, or is no MCP server
  readonly hint?: string | undefined // what to try instead
  readonly transports: readonly TransportFinding[]
  readonly server?: ServerFinding | undefined
  readonly authentication?: AuthenticationFinding | undefined
  readonly deviations: readonly Deviation[]
  readonly stderr?: string | undefined // the last lines of a process that gave no answer
}
