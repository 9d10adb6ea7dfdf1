import type { Upstream } from '../protocol/exchange.ts'
import { EVERYTHING, type Policy } from '../protocol/policy.ts'
import type { AuditConfig } from './audit.ts'
import type { CallerValues } from './caller-values.ts'
import type { OpenapiServer } from './openapi.ts'
import type { RecorderConfig } from './recorder.ts'
import type { TelemetryConfig } from './telemetry.ts'
import type { ToolBudget, ToolTrim } from './tool-list.ts'

/** The checked configuration the gateway is built from; nothing in it changes afterwards. */
export interface Snapshot {
  readonly listen: Listen
  readonly workers?: number | undefined // processes of this machine; undefined: one
  readonly auth?: Auth | undefined
  readonly sse?: Sse | undefined
  readonly tasks?: TasksConfig | undefined
  readonly limits: Limits
  readonly store?: StoreConfig | undefined // undefined: a file in the data directory
  readonly cluster?: ClusterConfig | undefined
  readonly audit?: AuditConfig | undefined // undefined: off
  readonly recorder?: RecorderConfig | undefined // undefined: the default
  readonly telemetry?: TelemetryConfig | undefined // undefined: off
  readonly servers: ReadonlyMap<string, ServerConfig>
  readonly workspaces: ReadonlyMap<string, WorkspaceConfig>
  readonly policies?: ReadonlyMap<string, Policy> | undefined // by name, for tokens
  readonly warnings: readonly string[]
  readonly file?: string | undefined // the configuration file, as an absolute path
  readonly sources?: readonly string[] | undefined // the file, its backup and the secret files it was read from, as absolute paths
}

/** When the gateway itself makes tasks of calls. */
export interface TasksConfig {
  readonly afterMs?: number | undefined // undefined: never
}

/** The database that keeps the state of all replicas. */
export interface StoreConfig {
  readonly url: string
  readonly secrets?: readonly [string, ...string[]] | undefined // the first seals, all open; undefined: in the database
}

/** Where the gateway listens, and which Host and Origin headers it accepts besides loopback ones. */
export interface Listen {
  readonly host: string
  readonly port: number // 0: any free one
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
  readonly exposeMetrics: boolean // to every caller who reaches the port
  readonly trustedProxies: readonly string[] // addresses and networks whose X-Forwarded-For counts
  readonly publicUrl?: string | undefined // the origin that clients and browsers use, without a slash at its end
}

/** How callers authenticate. */
export interface Auth {
  readonly required?: boolean | undefined // whether a token is needed; undefined: with issuers, a server, or the first API token
  readonly issuers?: ReadonlyMap<string, Issuer> | undefined // by name
  readonly scopes?: ReadonlyMap<string, ScopeRule> | undefined // by the name of the scope
  readonly server?: AuthServerConfig | undefined // undefined: this gateway issues no OAuth tokens
}

/** An authorization server whose tokens are accepted, and where people can sign in if it has a `clientId`. */
export interface Issuer {
  readonly name: string
  readonly url: string // exactly the `iss` of its tokens
  readonly jwks?: string | undefined // the URL of its keys; undefined: by discovery
  readonly audience?: readonly string[] | undefined // accepted `aud`; undefined: the workspace's URL and the origin
  readonly principal?: string | undefined // the claim with the caller's name; undefined: `<name>:<sub>`
  readonly reservedNames?: readonly string[] | undefined // issuers whose callers are called `<name>:<sub>`: a claim must not say so
  readonly grants: readonly [Grant, ...Grant[]] // the first that fits decides
  readonly introspection?: { readonly clientId: string; readonly clientSecret: string } | undefined // for opaque tokens
  readonly clientId?: string | undefined // of this gateway, there
  readonly clientSecret?: string | undefined
  readonly endpoints?: IssuerEndpoints | undefined // instead of those that discovery finds
}

export interface IssuerEndpoints {
  readonly authorization?: string | undefined
  readonly token?: string | undefined
  readonly userinfo?: string | undefined
  readonly introspection?: string | undefined
}

/** What callers with certain claims may use. */
export interface Grant {
  readonly where: Readonly<Record<string, readonly ClaimValue[]>> // every claim must be, or contain, one of its values
  readonly workspaces: readonly string[] // `*`: all
  readonly policy?: string | undefined // the name of a policy
}

export type ClaimValue = string | number | boolean

/** What needs a scope: calls of these tools, as globs of `<server>/<tool>`; undefined: any access. */
export interface ScopeRule {
  readonly tools?: readonly string[] | undefined
}

/** The embedded authorization server. */
export interface AuthServerConfig {
  readonly signIn: readonly [string, ...string[]] // `token` for an API token, and names of issuers with a `clientId`
  readonly registration: 'open' | 'listed' // which clients it serves: any, or those of `clients`
  readonly clients: ReadonlyMap<string, ListedClient> // by client id
}

/** A client that does not have to register; it has no secret. */
export interface ListedClient {
  readonly name?: string | undefined // shown on the consent page
  readonly redirectUris: readonly [string, ...string[]]
}

/** The first events of SSE channels. */
export interface Sse {
  readonly endpoint: 'relative' | 'absolute' // the address for messages: a path, or a whole URL
  readonly events?: readonly ('lifecycle' | 'ping')[] | undefined // for clients that do not choose with `?events=`
}

/** How the other replicas reach this one. */
export interface ClusterConfig {
  readonly listen?: { readonly host: string; readonly port: number } | undefined // undefined: a free port of its first address
  readonly address?: string | undefined // the URL for the others; undefined: made from `listen`
  readonly labels: readonly string[]
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string } | undefined // PEM files
}

/** Limits on size, number and time. */
export interface Limits {
  readonly bodyBytes: number // one request body
  readonly requestTimeoutMs: number // until a whole request has arrived
  readonly sessionIdleMs: number // an unused legacy session
  readonly orphanMs: number // a call whose client disconnected and may come back
  readonly questionTtlMs: number // a parked question without an answer
  readonly keepAliveMs: number // between comments on a silent stream
  readonly stallMs: number // a client that reads nothing
  readonly streamLogBytes: number // kept for resuming one stream
  readonly streamLogEvents: number // kept for resuming one stream
  readonly totalLogBytes: number // kept for resuming, all streams together
  readonly principalLogBytes: number // kept for resuming, all streams of one principal
  readonly principalSessions: number // sessions of one principal, and as many channels and listen streams
  readonly principalParkedCalls: number // calls of one principal that wait for an answer to a question
  readonly principalUpstreamSessions: number // sessions of one principal at one server
  readonly shutdownMs: number // for calls in flight when the gateway closes
  readonly batchSize: number // messages in one batch
  readonly concurrentStarts: number // servers being started at the same time
  readonly listWaitMs: number // a first list waits for servers that are still starting
  readonly rate?: RateLimits | undefined // undefined: no limit
}

/** Limits on requests. */
export interface RateLimits {
  readonly perPrincipal?: RateLimit | undefined
  readonly perWorkspace?: RateLimit | undefined
}

export interface RateLimit {
  readonly perSecond: number
  readonly burst: number // so many more in every ten seconds
}

/** One entry of `mcpServers`. */
export type ServerConfig = {
  readonly name: string
  readonly disabled: boolean
  readonly on?: string | undefined // the label of the replicas that it runs on; undefined: every replica
  readonly concurrency?: number | undefined // calls at the same time; undefined: no limit
  readonly enabledTools?: readonly string[] | undefined // globs of the tools that are shown; undefined: all
  readonly disabledTools?: readonly string[] | undefined // globs of the tools that are hidden
  readonly pin?: boolean | undefined // tools are hidden that are new or have changed, until they are approved
} & (RemoteServer | OpenapiServer | ProcessServer | BuiltinServer | EmbeddedServer | UnavailableServer)

/**
 * Which session a caller without a session gets at a legacy server: `sticky`, one per principal and set of
 * capabilities; `stateless`, one for all, for servers without state between requests; `isolated`, one per request.
 */
export type SessionPooling = 'sticky' | 'stateless' | 'isolated'

/** A server reached over HTTP. */
export interface RemoteServer {
  readonly kind: 'remote'
  readonly url: string
  readonly type: 'http' | 'sse' | 'auto'
  readonly allowCrossOriginEndpoint?: boolean | undefined // of an SSE channel
  readonly allowCrossOriginRedirect?: boolean | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly personal?: CallerValues | undefined // headers that depend on the caller
  readonly oauth?: ServerOAuth | false | undefined // undefined: if the server asks for it; false: never
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly timeoutMs: number // silence after which a call fails; progress restarts it
  readonly pool?: SessionPooling | undefined // undefined: sticky
}

/** How the gateway gets tokens for a remote server. */
export type ServerOAuth = {
  readonly issuer?: string | undefined // undefined: the one that the server names
  readonly scopes?: readonly string[] | undefined // undefined: those that the server asks for
} & (LoginGrant | ClientCredentialsGrant | JwtBearerGrant | IdJagGrant)

/** The gateway as a client that is registered at the authorization server; it proves itself with a secret or a key. */
interface OAuthClient {
  readonly clientId: string
  readonly clientSecret?: string | undefined
  readonly privateKey?: string | undefined // PEM, or a JWK as JSON, for `private_key_jwt`
}

/** A person logs in with a browser. */
export interface LoginGrant extends Partial<OAuthClient> {
  readonly grant: 'authorization_code'
  readonly login: 'caller' | 'gateway' // each caller for themselves, or one login for all
  readonly clientMetadataUrl?: string | undefined // undefined: the gateway's own document, if its public URL is https
  readonly pkce?: 'assumed' | undefined // undefined: the authorization server must say that it supports it
}

/** The gateway's own account. */
export interface ClientCredentialsGrant extends OAuthClient {
  readonly grant: 'client_credentials'
}

/** An assertion from elsewhere, such as a workload identity (RFC 7523). Exactly one of the two is given. */
export interface JwtBearerGrant extends Partial<OAuthClient> {
  readonly grant: 'jwt_bearer'
  readonly assertion?: string | undefined
  readonly assertionFile?: string | undefined // read for each request, because such tokens are short-lived
}

/** The caller's sign-in at `idp`, an issuer of `auth`, is exchanged for an identity assertion (ID-JAG). */
export interface IdJagGrant extends OAuthClient {
  readonly grant: 'id_jag'
  readonly idp: string
}

/** Whose requests one process of a server may serve: those of one user, of all users, or of one client session. */
export type ProcessSharing = 'user' | 'everyone' | 'session'

/** A server that the gateway starts and talks to over stdin and stdout. */
export interface ProcessServer {
  readonly kind: 'process'
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>> // besides the few variables that every program gets
  readonly inheritsAll?: true // it gets every variable of this process, as a command typed in a shell does
  readonly personal?: CallerValues | undefined // variables that depend on the caller
  readonly cwd: string | undefined // undefined: where the gateway runs
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly timeoutMs: number // silence after which a call fails; progress restarts it
  readonly pool?: SessionPooling | undefined // undefined: sticky
  readonly share?: ProcessSharing | undefined // undefined: user
  readonly limits?: ProcessLimits | undefined
}

/** Limits on the processes of one server; 0: no limit. */
export interface ProcessLimits {
  readonly idleMs: number // an unused process
  readonly lifetimeMs: number // any process, as soon as it can be replaced
  readonly memoryBytes: number // resident, with its children
  readonly processes: number // at the same time
  readonly exitMs: number // to exit after its stdin was closed
  readonly termMs: number // to exit after SIGTERM
}

/** A server that runs inside the gateway. */
export type BuiltinServer =
  | { readonly kind: 'builtin'; readonly builtin: 'demo' }
  | { readonly kind: 'builtin'; readonly builtin: 'files'; readonly root: string; readonly showHidden?: boolean }
  | ({ readonly kind: 'builtin'; readonly builtin: 'memory' } & MemorySettings)

/** A server defined by the program that embeds the gateway. */
export interface EmbeddedServer {
  readonly kind: 'embedded'
  readonly upstream: Upstream
}

/** Settings of the built-in memory. */
export interface MemorySettings {
  readonly tenant: 'workspace' | 'principal' // which callers share a memory
  readonly group: string // of calls that name none
  readonly database?: string | undefined // undefined: files in the data directory
  readonly extraction?: ExtractionSettings | undefined
  readonly embeddings?: EmbeddingSettings | undefined
}

/** A model behind an OpenAI-compatible address. */
interface ModelSettings {
  readonly url: string
  readonly key?: string | undefined
  readonly model: string
}

export interface ExtractionSettings extends ModelSettings {
  readonly smallModel?: string | undefined
  readonly dailyTokens?: number | undefined
  readonly callsPerMinute?: number | undefined
}

export interface EmbeddingSettings extends ModelSettings {
  readonly dimensions?: number | undefined
}

/** A valid entry that cannot be served. It is shown with its reason; the other servers run. */
export interface UnavailableServer {
  readonly kind: 'unavailable'
  readonly reason: string
}

/** A set of servers behind one URL. */
export interface WorkspaceConfig extends WorkspaceRules {
  readonly name: string
  readonly servers: readonly string[]
}

/** What a workspace shows of its servers, and under which names. */
export interface WorkspaceRules {
  readonly names: NameStyle
  readonly nameLength?: number | undefined // most characters of a name; undefined: 64, with a prefix only
  readonly instructions?: string | undefined // instead of what the servers say
  readonly strict: boolean // a list fails when a server is missing from it
  readonly policy: Policy
  readonly overlays: ReadonlyMap<string, ReadonlyMap<string, Overlay>> // by server, then by the tool's own name
  readonly budget?: ToolBudget | undefined // undefined: all tools are listed
  readonly trim?: ToolTrim | undefined // undefined: definitions are listed as servers send them
}

/** How tools and prompts are called: `<server>__<name>`, `<server>/<name>`, or as their servers call them. */
export type NameStyle = 'prefix' | 'slash' | 'plain'

/** Widely used model APIs reject longer names. */
export const DEFAULT_NAME_LENGTH = 64

/** How one tool is shown and called differently from what its server says. */
export interface Overlay {
  readonly name?: string | undefined // shown instead of its own
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly hidden: boolean
  readonly annotations?: Readonly<Record<string, unknown>> | undefined // merged over its own
  readonly fixed: Readonly<Record<string, unknown>> // arguments that callers neither see nor change
  readonly defaults: Readonly<Record<string, unknown>> // arguments for callers who leave them out
}

/** The rules of a workspace that has none in the file; with several servers, tool names have a prefix. */
export const defaultRules = (servers: number): WorkspaceRules => ({
  names: servers > 1 ? 'prefix' : 'plain',
  strict: false,
  policy: EVERYTHING,
  overlays: new Map(),
})

/** True if OAuth tokens are accepted, besides API tokens. */
export const acceptsOAuth = ({ issuers, server }: Auth): boolean => (issuers?.size ?? 0) > 0 || server !== undefined

const MIB = 1024 * 1024
const MINUTE = 60_000

export const DEFAULT_LISTEN: Listen = {
  host: '127.0.0.1',
  port: 8765,
  allowedHosts: [],
  allowedOrigins: [],
  exposeMetrics: false,
  trustedProxies: [],
}

export const DEFAULT_SSE: Sse = { endpoint: 'relative' }

export const DEFAULT_LIMITS: Limits = {
  bodyBytes: 64 * MIB,
  requestTimeoutMs: 5 * MINUTE,
  sessionIdleMs: 24 * 60 * MINUTE,
  orphanMs: 10 * MINUTE,
  questionTtlMs: 15 * MINUTE,
  keepAliveMs: 15_000,
  stallMs: 2 * MINUTE,
  streamLogBytes: 4 * MIB,
  streamLogEvents: 1000,
  totalLogBytes: 64 * MIB,
  principalLogBytes: 32 * MIB,
  principalSessions: 1000,
  principalParkedCalls: 1000,
  principalUpstreamSessions: 256,
  shutdownMs: 5_000,
  batchSize: 100,
  concurrentStarts: 4,
  listWaitMs: 12_000,
}

export const DEFAULT_PROCESS_LIMITS: ProcessLimits = {
  idleMs: 5 * MINUTE,
  lifetimeMs: 0,
  memoryBytes: 0,
  processes: 64,
  exitMs: 2000,
  termMs: 2000,
}

export const DEFAULT_TIMEOUT_MS = 5 * MINUTE

export const MOST_WORKERS = 64 // more would only wait for each other at the store

/** The second configuration with those settings of the first that stay until a restart. */
export const keepUntilRestart = (before: Snapshot, after: Snapshot): Snapshot => {
  const { listen, workers, auth, sse, limits, store, cluster, audit, telemetry, recorder } = before
  return { ...after, listen, workers, auth, sse, limits, store, cluster, audit, telemetry, recorder }
}
