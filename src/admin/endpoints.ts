import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Json, PlainObject } from '../wire/json/json.ts'
import type { AdminRole } from './api/session.ts'
import type { AdminCaller } from './callers.ts'

// The admin API is a table of endpoints. To add a group of them:
//
// 1. Describe what they answer in `api/<group>.ts`: types only, because the console imports them.
// 2. Write `<group>-endpoints.ts`, which exports `create<Group>Endpoints(options): readonly AdminEndpoint[]`.
// 3. Add that to the list in `app/admin.ts`, which passes the options on.
//
// Routing, roles, CSRF, rate limits, the audit log and the OpenAPI document all come from the table.

/** A JSON Schema, for the OpenAPI document and to check bodies. */
export type AdminSchema = PlainObject

export type AdminMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One row of the admin API. */
export interface AdminEndpoint {
  readonly method: AdminMethod
  readonly path: string // `/admin/servers/{name}`; `AdminCall.params` has what is in braces, decoded
  readonly access: 'anyone' | 'viewer' | 'owner'
  readonly summary: string // one line, for the OpenAPI document
  readonly parameters?: Readonly<Record<string, AdminSchema>> | undefined // of the query
  readonly headers?: Readonly<Record<string, AdminSchema>> | undefined // that a request needs
  /** Types, required and unknown members, and enums are checked before `AdminCall.json` resolves. */
  readonly body?: AdminSchema | undefined
  readonly bodyMedia?: string | undefined // of a body that `run` reads itself
  readonly maxBodyBytes?: number | undefined // default: 64 KiB
  readonly response?: AdminSchema | undefined
  readonly isEmpty?: true | undefined // there is nothing to answer: 204
  readonly media?: string | undefined // of a response that `run` writes itself; undefined: JSON
  readonly checksOrigin?: boolean | undefined // by itself; undefined: requests with a cookie need the CSRF header
  readonly isAudited?: boolean | undefined // default: everything but GET
  /**
   * Returns what is sent as JSON; undefined if `isEmpty`, or if it has begun the response itself. Throws an AdminError or a
   * ConfigError (422) to refuse.
   */
  readonly run: (call: AdminCall) => unknown
}

/** One request to an endpoint. */
export interface AdminCall {
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The body, checked against the schema of the endpoint; an empty one is `{}`. Rejects with an AdminError. */
  json(): Promise<Json>
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly role: AdminRole
  readonly principal: string | undefined
  readonly caller: AdminCaller
  readonly signal: AbortSignal // the client has disconnected, or may not go on
}

/** The refusal of a request: its HTTP status, and a message that says what to do. */
export class AdminError extends Error {
  readonly status: number
  readonly details: PlainObject | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, details?: PlainObject, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.name = 'AdminError'
    this.status = status
    this.details = details
    this.headers = headers
  }
}

/** The endpoints of a path, and the parameters in it. */
export interface PathMatch {
  readonly endpoints: readonly AdminEndpoint[] // one per method
  readonly params: Readonly<Record<string, string>>
}

/** Makes the function that finds the endpoints of a path. Where several paths match, the one without parameters is meant. */
export const createPathMatcher = (endpoints: readonly AdminEndpoint[]) => {
  const byPath = new Map<string, AdminEndpoint[]>()
  for (const endpoint of endpoints) byPath.set(endpoint.path, [...(byPath.get(endpoint.path) ?? []), endpoint])
  const patterns = [...byPath].map(([path, rows]) => ({ steps: path.split('/'), rows }))
  return (path: string): PathMatch | undefined => {
    const exact = byPath.get(path)
    if (exact) return { endpoints: exact, params: {} }
    const steps = path.split('/')
    for (const { steps: pattern, rows } of patterns) {
      const params = paramsIn(pattern, steps)
      if (params) return { endpoints: rows, params }
    }
    return undefined
  }
}

const nameIn = (step: string): string | undefined => /^\{(\w+)\}$/.exec(step)?.[1]

const paramsIn = (pattern: readonly string[], steps: readonly string[]): Record<string, string> | undefined => {
  if (pattern.length !== steps.length) return undefined
  const params: Record<string, string> = {}
  for (const [at, step] of pattern.entries()) {
    const name = nameIn(step)
    const text = steps[at] ?? ''
    if (name === undefined ? step !== text : text === '') return undefined
    if (name !== undefined) params[name] = decode(text)
  }
  return params
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AdminError(400, `The path is not valid: ${JSON.stringify(text)} is not percent-encoded text`)
  }
}

/** The routes a table needs: its paths, and a prefix for those with parameters. */
export const routePaths = (endpoints: readonly AdminEndpoint[]): readonly string[] => [
  ...new Set(endpoints.map(({ path }) => (path.includes('{') ? `${path.slice(0, path.indexOf('{'))}*` : path))),
]
