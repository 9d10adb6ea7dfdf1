import * as z from 'zod'
import { isNetwork } from '../std/address.ts'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import { auditSchema } from './audit.ts'
import { authSchema, publicUrlSchema } from './auth-schema.ts'
import { clusterSchema, labelSchema } from './cluster.ts'
import { apiSchema } from './openapi.ts'
import { recorderSchema } from './recorder.ts'
import {
  flagSchema,
  listOf,
  looseObject,
  mapOf,
  object,
  oneOfSchema,
  textList,
  textMap,
  textSchema,
  wholeNumber,
} from './schema-parts.ts'
import { oauthSchema } from './server-oauth.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_PROCESS_LIMITS,
  DEFAULT_TIMEOUT_MS,
  type Limits,
  MOST_WORKERS,
  type ProcessLimits,
  type RateLimit,
} from './snapshot.ts'
import { storeSchema } from './store.ts'
import { telemetrySchema } from './telemetry.ts'
import { policySchema, WORKSPACE_NAME, workspaceSchema } from './workspace-schema.ts'

export const listenSchema = object({
  host: textSchema
    .min(1, { error: 'expected a host name or address' })
    .default(DEFAULT_LISTEN.host)
    .describe('Address to listen on.'),
  port: wholeNumber(0, 65535).default(DEFAULT_LISTEN.port).describe('Port to listen on; 0 takes any free one.'),
  allowedHosts: listOf(
    textSchema.regex(/^(\[[^\]]+\]|[^\s:/@?#[\]]+)(:\d+)?$/, { error: 'expected a host name like "mcp.example.com"' }),
  )
    .default([])
    .describe('Host headers to accept besides loopback ones; needed behind a proxy or with a host name.'),
  allowedOrigins: listOf(
    textSchema.regex(/^(\*|[a-z][a-z0-9+.-]*:\/\/[^\s/?#]+)$/i, {
      error: 'expected an origin like "https://app.example.com", or "*"',
    }),
  )
    .default([])
    .describe('Origins of browser pages to accept besides loopback ones; "*" accepts all.'),
  exposeMetrics: flagSchema
    .default(DEFAULT_LISTEN.exposeMetrics)
    .describe('Show /metrics, and the servers in /readyz, to every caller who reaches the port.'),
  trustedProxies: listOf(
    textSchema.refine(isNetwork, { error: 'expected an address or a network like "127.0.0.1" or "10.0.0.0/8"' }),
  )
    .default([])
    .describe(
      'Addresses and networks of proxies whose X-Forwarded-For names the client; for limits per address and logs.',
    ),
  publicUrl: publicUrlSchema
    .optional()
    .describe('The origin that clients and browsers use, if not that of "host" and "port": for links and OAuth.'),
}).describe('Where the gateway listens, and which hosts and origins it accepts.')

const perSecond = wholeNumber(1, 1_000_000).describe('Requests in each second.')
const rateLimit = (what: string) =>
  z
    .union(
      [
        perSecond,
        z.strictObject({
          perSecond,
          burst: wholeNumber(0, 1_000_000)
            .describe('So many more, every ten seconds; as many as perSecond when absent.')
            .optional(),
        }),
      ],
      { error: 'expected a whole number of requests per second, or an object with "perSecond" and "burst"' },
    )
    .transform((limit): RateLimit => {
      if (typeof limit === 'number') return { perSecond: limit, burst: limit }
      return { perSecond: limit.perSecond, burst: limit.burst ?? limit.perSecond }
    })
    .optional()
    .describe(what)

export const sseSchema = object({
  endpoint: oneOfSchema(['relative', 'absolute'])
    .default('relative')
    .describe('How the address for messages is written: as a path, or as a whole URL for clients that need one.'),
  events: listOf(oneOfSchema(['lifecycle', 'ping']))
    .optional()
    .describe('Named events on every channel of /sse, besides endpoint and message; a client chooses with ?events=.'),
}).describe('The SSE channels at /sse.')

export const tasksSchema = object({
  afterMs: wholeNumber(0, LONGEST_TIMER_MS)
    .optional()
    .describe(
      'Milliseconds until a running call becomes a task, for clients that declare the tasks extension; without it, only servers make tasks.',
    ),
}).describe('Tasks: calls whose results are fetched later.')

type LimitName = Exclude<keyof Limits, 'rate'>
const atMost = (name: LimitName, what: string) => wholeNumber(1).default(DEFAULT_LIMITS[name]).describe(what)
const milliseconds = (name: LimitName, what: string) =>
  wholeNumber(1, LONGEST_TIMER_MS).default(DEFAULT_LIMITS[name]).describe(`Milliseconds ${what}`)

export const limitsSchema = object({
  bodyBytes: atMost('bodyBytes', 'Largest request body, in bytes.'),
  requestTimeoutMs: milliseconds('requestTimeoutMs', 'until a whole request must have arrived.'),
  sessionIdleMs: milliseconds('sessionIdleMs', 'after which an unused session ends.'),
  orphanMs: milliseconds('orphanMs', 'a call continues after its client was cut off.'),
  questionTtlMs: milliseconds('questionTtlMs', 'a question waits for its answer.'),
  keepAliveMs: milliseconds('keepAliveMs', 'between comments on a silent stream.'),
  stallMs: milliseconds('stallMs', 'after which a client that reads nothing is disconnected.'),
  streamLogBytes: atMost('streamLogBytes', 'Bytes kept for resuming one stream.'),
  streamLogEvents: atMost('streamLogEvents', 'Events kept for resuming one stream.'),
  totalLogBytes: atMost('totalLogBytes', 'Bytes kept for resuming, all streams together.'),
  principalLogBytes: atMost('principalLogBytes', 'Bytes kept for resuming, all streams of one principal.'),
  principalSessions: atMost(
    'principalSessions',
    'Most sessions of one principal, most SSE channels, and most streams of subscriptions/listen.',
  ),
  principalParkedCalls: atMost(
    'principalParkedCalls',
    'Most calls of one principal that wait for an answer to a question.',
  ),
  principalUpstreamSessions: atMost(
    'principalUpstreamSessions',
    'Most sessions of one principal at one server, besides those of its own sessions here.',
  ),
  shutdownMs: milliseconds('shutdownMs', 'given to calls in flight when the gateway closes.'),
  batchSize: atMost('batchSize', 'Most messages in one batch.'),
  concurrentStarts: atMost('concurrentStarts', 'Most servers being started at the same time.'),
  listWaitMs: milliseconds('listWaitMs', 'a first list waits for servers that are still starting.'),
  rate: object({
    perPrincipal: rateLimit('Requests of one caller.'),
    perWorkspace: rateLimit('Requests to one workspace, from all callers together.'),
  })
    .optional()
    .describe('Most requests per second; no limit when absent.'),
} satisfies Record<keyof Limits, z.ZodType>).describe('Limits on size, number and time.')

const processLimit = (name: keyof ProcessLimits, least: number, what: string) =>
  wholeNumber(least, name.endsWith('Ms') ? LONGEST_TIMER_MS : undefined)
    .default(DEFAULT_PROCESS_LIMITS[name])
    .describe(what)

const processLimitsSchema = object({
  idleMs: processLimit('idleMs', 0, 'Milliseconds after which an unused process is ended; 0: never.'),
  lifetimeMs: processLimit('lifetimeMs', 0, 'Milliseconds after which a process is replaced; 0: never.'),
  memoryBytes: processLimit('memoryBytes', 0, 'Most memory of a process and its children; 0: no limit. Linux.'),
  processes: processLimit('processes', 1, 'Most processes at the same time.'),
  exitMs: processLimit('exitMs', 1, 'Milliseconds to exit after stdin was closed, before SIGTERM.'),
  termMs: processLimit('termMs', 1, 'Milliseconds to exit after SIGTERM, before SIGKILL.'),
} satisfies Record<keyof ProcessLimits, z.ZodType>).describe('Limits on the processes of a "command".')

const nonEmpty = textSchema.min(1, { error: 'expected a string that is not empty' })
const countFromOne = (what: string) => wholeNumber(1).optional().describe(what)
const modelEndpoint = {
  url: nonEmpty.describe('Base address of an OpenAI-compatible endpoint, like https://api.example.com/v1.'),
  key: nonEmpty.optional().describe('Its key; write ${NAME} or ${file:PATH}.'),
  model: nonEmpty.describe('The model to use.'),
}

/** `memory` of an entry with `"builtin": "memory"`. */
export const memorySchema = object({
  tenant: z
    .enum(['workspace', 'principal'], { error: 'expected "workspace" or "principal"' })
    .default('workspace')
    .describe('Which callers share a memory: all callers of a workspace, or only those of the same principal.'),
  group: textSchema
    .regex(/^[A-Za-z0-9_-]{1,255}$/, { error: 'expected letters, digits, "-" and "_"' })
    .default('main')
    .describe('The group of calls that name none.'),
  database: nonEmpty
    .optional()
    .describe('A PostgreSQL address, postgres://…; a file in the data directory when absent.'),
  extraction: object({
    ...modelEndpoint,
    smallModel: nonEmpty.optional().describe('A cheaper model for comparing facts.'),
    dailyTokens: countFromOne('Most tokens in a day, for each memory.'),
    callsPerMinute: countFromOne('Most calls in a minute, for each memory.'),
  })
    .optional()
    .describe('A model that reads what is added; none when absent.'),
  embeddings: object({ ...modelEndpoint, dimensions: countFromOne('Dimensions to ask for.') })
    .optional()
    .describe('A model that helps to search by meaning; none when absent.'),
}).describe('How "builtin": "memory" stores what it is told.')

export type MemoryEntry = z.output<typeof memorySchema>

/** One entry of `mcpServers`, as other clients write it; unknown keys are theirs. */
export const serverSchema = looseObject({
  url: textSchema.optional().describe('Address of a remote server.'),
  httpUrl: textSchema.optional().describe('Address of a remote server that speaks Streamable HTTP.'),
  headers: textMap
    .optional()
    .describe(
      'HTTP headers sent with every request; ${NAME} and ${NAME:-default} are filled in from the environment, ${file:PATH} from a file, ${caller.name} and ${caller.workspace} from the caller.',
    ),
  type: oneOfSchema(['http', 'streamable-http', 'streamableHttp', 'streamable_http', 'sse', 'stdio'])
    .optional()
    .describe('The transport of the server; detected when absent.'),
  allowCrossOriginEndpoint: flagSchema
    .optional()
    .describe(
      'Whether the SSE channel of a remote server may name an endpoint of another origin for our messages; it gets no headers.',
    ),
  allowCrossOriginRedirect: flagSchema
    .optional()
    .describe(
      'Whether redirects of a remote server to another origin are followed; from a public server never to a private address.',
    ),
  command: textSchema.optional().describe('Program to start, found in PATH; no shell reads it.'),
  args: textList.optional().describe('Arguments of the program, each passed as written.'),
  env: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()], { error: 'expected a string' }), {
      error: 'expected an object of strings',
    })
    .optional()
    .describe('Variables of the program, besides PATH, HOME and the like; no other variable of the gateway is passed.'),
  envFile: textSchema
    .optional()
    .describe('A file with further variables of the program, as NAME=value lines; those of "env" come first.'),
  credentials: mapOf(
    z.strictObject(
      { headers: textMap.optional(), env: textMap.optional() },
      { error: 'expected an object with "headers" or "env"' },
    ),
  )
    .optional()
    .describe(
      'Headers (or variables of a program) for each caller by name, "*" for all others; callers without any are rejected.',
    ),
  oauth: oauthSchema.optional(),
  cwd: textSchema.optional().describe('Folder to start the program in.'),
  limits: processLimitsSchema.optional(),
  timeout: wholeNumber(1, LONGEST_TIMER_MS)
    .default(DEFAULT_TIMEOUT_MS)
    .describe('Milliseconds of silence after which a call fails; progress restarts the time.'),
  on: labelSchema
    .optional()
    .describe('Runs only on replicas with this label ("cluster.labels"); the others send their calls there.'),
  concurrency: wholeNumber(1, 1_000_000)
    .optional()
    .describe('Most calls at the same time; further calls wait in a queue. No limit when absent.'),
  disabled: flagSchema.default(false),
  enabledTools: textList
    .optional()
    .describe('Only these tools of the server are shown, "*" standing for any characters.'),
  disabledTools: textList.optional().describe('These tools of the server are hidden, "*" standing for any characters.'),
  pin: flagSchema
    .optional()
    .describe(
      'Whether tools are pinned: one whose definition changes, or that is new, is hidden until it is approved with "dragoman approve".',
    ),
  builtin: oneOfSchema(['demo', 'files', 'memory']).optional().describe('A server that comes with the gateway.'),
  root: textSchema
    .min(1, { error: 'expected a folder' })
    .optional()
    .describe('The folder that "files" shows, relative to this file; the current directory when absent.'),
  showHidden: flagSchema
    .optional()
    .describe('Whether "files" shows files and folders whose name begins with a dot; they are hidden when absent.'),
  memory: memorySchema.optional(),
  openapi: textSchema
    .optional()
    .describe('An OpenAPI document, as a file or a URL: the operations of a REST API become tools.'),
  api: apiSchema.optional(),
  pool: oneOfSchema(['sticky', 'stateless', 'isolated'])
    .optional()
    .describe(
      'Which session of a legacy server callers without a session get: one per user, one for all, or one per request.',
    ),
  share: oneOfSchema(['user', 'everyone', 'session'])
    .optional()
    .describe(
      'Which clients share a process of a "command": those of one user (the default), those of all users, or none ("session").',
    ),
  era: oneOfSchema(['auto', 'modern', 'legacy'])
    .default('auto')
    .describe(
      'Which protocol to speak with it: modern is 2026-07-28, legacy everything before; auto is the era of each client, where the server speaks both.',
    ),
}).meta({ id: 'server', anyOf: ['url', 'httpUrl', 'command', 'openapi', 'builtin'].map(key => ({ required: [key] })) })

export type ServerEntry = z.output<typeof serverSchema>

/** `"mcpServers": "default"`: what is served without a file. */
export const BUILT_IN = 'default'

export const passEnvSchema = textList
  .optional()
  .describe(
    'Variables of the gateway that every "command" gets, by name, "*" standing for any characters: proxies, certificate files.',
  )

export const workersSchema = z
  .number({ error: 'expected a whole number' })
  .int({ error: 'expected a whole number' })
  .min(1, { error: 'expected at least 1' })
  .max(MOST_WORKERS, { error: `expected at most ${MOST_WORKERS}` })
  .optional()
  .describe('How many processes of this machine the gateway uses, about one for each core; 1 when absent.')

const serversSchema = z.record(z.string(), serverSchema)

/** The whole file. */
export const fileSchema = z.looseObject({
  $schema: textSchema.optional(),
  listen: listenSchema.optional(),
  workers: workersSchema,
  auth: authSchema.optional(),
  sse: sseSchema.optional(),
  tasks: tasksSchema.optional(),
  limits: limitsSchema.optional(),
  store: storeSchema.optional(),
  cluster: clusterSchema.optional(),
  audit: auditSchema.optional(),
  recorder: recorderSchema.optional(),
  telemetry: telemetrySchema.optional(),
  passEnv: passEnvSchema,
  mcpServers: z
    .union([serversSchema, z.literal(BUILT_IN)])
    .optional()
    .describe(
      'MCP servers by name, in the shape other MCP clients use; "default" for the built-in memory and the files of the current directory.',
    ),
  servers: serversSchema.optional().describe('The same, as VS Code calls it.'),
  workspaces: z
    .record(z.string().regex(WORKSPACE_NAME), workspaceSchema)
    .optional()
    .describe(
      'The workspaces at /mcp/<name>; when absent, default holds all servers, and each server has a workspace of its own name.',
    ),
  policies: z
    .record(z.string(), policySchema)
    .optional()
    .describe('Policies by name, for workspaces and for tokens (dragoman token create NAME --policy POLICY).'),
})

/** The published JSON Schema of the configuration file. */
export const jsonSchema = (): object => ({
  ...z.toJSONSchema(fileSchema, { io: 'input', target: 'draft-7' }),
  title: 'Dragoman configuration',
})
