import { z } from 'zod'
import { LONGEST_TIMER_MS } from '../std/time.ts'
import { memorySchema } from './memory-schema.ts'
import {
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  DEFAULT_PROCESS_LIMITS,
  DEFAULT_TIMEOUT_MS,
  type Limits,
  type ProcessLimits,
  type RateLimit,
} from './snapshot.ts'
import { policySchema, WORKSPACE_NAME, workspaceSchema } from './workspace-schema.ts'

const text = z.string({ error: 'expected a string' })
const flag = z.boolean({ error: 'expected true or false' })
const LIST = { error: 'expected an array of strings' }
const texts = z.array(text, LIST)
const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, { error: `expected one of ${values.map(value => JSON.stringify(value)).join(', ')}` })

const whole = (min: number, max: number) => {
  const error =
    max === Number.MAX_SAFE_INTEGER
      ? `expected a whole number from ${min} up`
      : `expected a whole number from ${min} to ${max}`
  return z.int({ error }).min(min, { error }).max(max, { error })
}

type Bound = Exclude<keyof Limits, 'rate'>

const bytes = (name: Bound, what: string) =>
  whole(1, Number.MAX_SAFE_INTEGER).default(DEFAULT_LIMITS[name]).describe(what)
const milliseconds = (name: Bound, what: string) =>
  whole(1, LONGEST_TIMER_MS).default(DEFAULT_LIMITS[name]).describe(`Milliseconds ${what}`)

/** `listen`: where the doors are. */
export const listenSchema = z
  .strictObject(
    {
      host: text
        .min(1, { error: 'expected a host name or address' })
        .default(DEFAULT_LISTEN.host)
        .describe('Address to listen on.'),
      port: whole(0, 65535).default(DEFAULT_LISTEN.port).describe('Port to listen on; 0 takes any free one.'),
      allowedHosts: z
        .array(
          text.regex(/^(\[[^\]]+\]|[^\s:/@?#[\]]+)(:\d+)?$/, { error: 'expected a host name like "mcp.example.com"' }),
          LIST,
        )
        .default([])
        .describe('Host headers to accept besides loopback ones; needed behind a proxy or a name of its own.'),
      allowedOrigins: z
        .array(
          text.regex(/^(\*|[a-z][a-z0-9+.-]*:\/\/[^\s/?#]+)$/i, {
            error: 'expected an origin like "https://app.example.com", or "*"',
          }),
          LIST,
        )
        .default([])
        .describe('Origins of browser pages to accept besides loopback ones; "*" takes all.'),
      exposeMetrics: flag
        .default(DEFAULT_LISTEN.exposeMetrics)
        .describe('Show /metrics, and the servers in /readyz, to every caller who reaches the port.'),
    },
    { error: 'expected an object' },
  )
  .describe('Where the gateway listens, and for whom.')

/** `auth`: how callers are known. */
export const authSchema = z
  .strictObject(
    {
      required: flag
        .optional()
        .describe('Whether callers need a token; when absent, from the moment the first token is created.'),
    },
    { error: 'expected an object' },
  )
  .describe('Who may come in.')

const perSecond = whole(1, 1_000_000).describe('Requests in each second.')
const rateLimit = (what: string) =>
  z
    .union(
      [
        perSecond,
        z.strictObject({
          perSecond,
          burst: whole(0, 1_000_000)
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

const rateSchema = z.strictObject(
  {
    perPrincipal: rateLimit('Requests of one caller.'),
    perWorkspace: rateLimit('Requests to one workspace, from all callers together.'),
  },
  { error: 'expected an object' },
)

/** `sse`: how SSE channels introduce themselves. */
export const sseSchema = z
  .strictObject(
    {
      endpoint: oneOf(['relative', 'absolute'])
        .default('relative')
        .describe('How the address for messages is written: as a path, or as a whole URL for clients that need one.'),
      events: z
        .array(oneOf(['lifecycle', 'ping']), LIST)
        .optional()
        .describe(
          'Named events on every channel of /sse, besides endpoint and message; a client chooses with ?events=.',
        ),
    },
    { error: 'expected an object' },
  )
  .describe('The SSE channels at /sse.')

/** `limits`: every bound, with its default. */
export const limitsSchema = z
  .strictObject(
    {
      bodyBytes: bytes('bodyBytes', 'Largest request body, in bytes.'),
      requestTimeoutMs: milliseconds('requestTimeoutMs', 'until a whole request must have arrived.'),
      sessionIdleMs: milliseconds('sessionIdleMs', 'after which an unused session ends.'),
      orphanMs: milliseconds('orphanMs', 'a call goes on after its client was cut off.'),
      questionTtlMs: milliseconds('questionTtlMs', 'a question waits for its answer.'),
      keepAliveMs: milliseconds('keepAliveMs', 'between comments on a silent stream.'),
      stallMs: milliseconds('stallMs', 'after which a reader that takes nothing is dropped.'),
      streamLogBytes: bytes('streamLogBytes', 'Bytes kept for resuming one stream.'),
      streamLogEvents: bytes('streamLogEvents', 'Events kept for resuming one stream.'),
      totalLogBytes: bytes('totalLogBytes', 'Bytes kept for resuming, all streams together.'),
      principalLogBytes: bytes('principalLogBytes', 'Bytes kept for resuming, all streams of one principal.'),
      principalSessions: bytes('principalSessions', 'Most sessions of one principal, and most SSE channels.'),
      principalParkedCalls: bytes(
        'principalParkedCalls',
        'Most calls of one principal that wait for an answer to a question.',
      ),
      principalUpstreamSessions: bytes(
        'principalUpstreamSessions',
        'Most sessions of one principal at one server, besides those of its own sessions here.',
      ),
      shutdownMs: milliseconds('shutdownMs', 'given to calls in flight when the gateway closes.'),
      batchSize: bytes('batchSize', 'Most messages in one batch.'),
      concurrentStarts: bytes('concurrentStarts', 'Most servers being started at the same time.'),
      rate: rateSchema.optional().describe('Most requests per second; as many as come when absent.'),
    } satisfies Record<keyof Limits, z.ZodType>,
    { error: 'expected an object' },
  )
  .describe('Bounds on size, number and time.')

const processLimit = (name: keyof ProcessLimits, least: number, what: string) =>
  whole(least, name.endsWith('Ms') ? LONGEST_TIMER_MS : Number.MAX_SAFE_INTEGER)
    .default(DEFAULT_PROCESS_LIMITS[name])
    .describe(what)

const processLimitsSchema = z
  .strictObject(
    {
      idleMs: processLimit('idleMs', 0, 'Milliseconds after which an unused process is ended; 0: never.'),
      lifetimeMs: processLimit('lifetimeMs', 0, 'Milliseconds after which a process is replaced; 0: never.'),
      memoryBytes: processLimit('memoryBytes', 0, 'Most memory of a process and its children; 0: no limit. Linux.'),
      processes: processLimit('processes', 1, 'Most processes at the same time.'),
      exitMs: processLimit('exitMs', 1, 'Milliseconds to leave after stdin was closed, before SIGTERM.'),
      termMs: processLimit('termMs', 1, 'Milliseconds to leave after SIGTERM, before SIGKILL.'),
    } satisfies Record<keyof ProcessLimits, z.ZodType>,
    { error: 'expected an object' },
  )
  .describe('Bounds on the processes of a "command".')

/** One entry of `mcpServers`, as other clients write it; keys we do not know are theirs. */
export const serverSchema = z
  .looseObject(
    {
      url: text.optional().describe('Address of a remote server.'),
      httpUrl: text.optional().describe('Address of a remote server that speaks Streamable HTTP.'),
      headers: z
        .record(z.string(), text, { error: 'expected an object of strings' })
        .optional()
        .describe(
          'HTTP headers sent with every request; ${NAME} and ${NAME:-default} are filled in from the environment, ${file:PATH} from a file, ${caller.name} and ${caller.workspace} with whoever calls.',
        ),
      type: oneOf(['http', 'streamable-http', 'streamableHttp', 'streamable_http', 'sse', 'stdio'])
        .optional()
        .describe('How the server is reached; found out when absent.'),
      allowCrossOriginEndpoint: flag
        .optional()
        .describe('Whether the SSE channel of a remote server may send our messages to another origin.'),
      allowCrossOriginRedirect: flag
        .optional()
        .describe(
          'Whether redirects of a remote server to another origin are followed; from a public server never to a private address.',
        ),
      command: text.optional().describe('Program to start, found in PATH; no shell reads it.'),
      args: texts.optional().describe('Arguments of the program, each as it is.'),
      env: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean()], { error: 'expected a string' }), {
          error: 'expected an object of strings',
        })
        .optional()
        .describe('Variables of the program, besides PATH, HOME and the like; it gets no other of ours.'),
      credentials: z
        .record(
          z.string(),
          z.strictObject(
            {
              headers: z.record(z.string(), text, { error: 'expected an object of strings' }).optional(),
              env: z.record(z.string(), text, { error: 'expected an object of strings' }).optional(),
            },
            { error: 'expected an object with "headers" or "env"' },
          ),
          { error: 'expected an object' },
        )
        .optional()
        .describe(
          'Headers (or variables of a program) for each caller by name, "*" for everybody else; whoever is not named is refused.',
        ),
      cwd: text.optional().describe('Folder to start the program in.'),
      limits: processLimitsSchema.optional(),
      timeout: whole(1, LONGEST_TIMER_MS)
        .default(DEFAULT_TIMEOUT_MS)
        .describe('Milliseconds of silence after which a call is given up; progress starts them again.'),
      concurrency: whole(1, 1_000_000)
        .optional()
        .describe('Most calls at the same time; more wait their turn. As many as come when absent.'),
      disabled: flag.default(false),
      builtin: oneOf(['demo', 'files', 'memory']).optional().describe('A server that comes with the gateway.'),
      root: text
        .min(1, { error: 'expected a folder' })
        .optional()
        .describe('The folder that "files" shows, relative to this file; the current directory when absent.'),
      showHidden: flag
        .optional()
        .describe('Whether "files" shows files and folders whose name begins with a dot; they are hidden when absent.'),
      memory: memorySchema.optional(),
      pool: oneOf(['sticky', 'stateless', 'isolated'])
        .optional()
        .describe(
          'which session of a legacy server callers without one of their own get: one per user, one for all, or one per request',
        ),
      share: oneOf(['user', 'everyone'])
        .optional()
        .describe('Whose requests one process of a "command" may serve: those of one user (the default), or of all.'),
      era: oneOf(['auto', 'modern', 'legacy'])
        .default('auto')
        .describe(
          'Which protocol to speak with it: modern is 2026-07-28, legacy everything before; auto is the era of each client, where the server speaks both.',
        ),
    },
    { error: 'expected an object' },
  )
  .meta({ anyOf: ['url', 'httpUrl', 'command', 'builtin'].map(key => ({ required: [key] })) })

export type ServerEntry = z.output<typeof serverSchema>

/** The whole file. */
export const fileSchema = z.looseObject({
  $schema: text.optional(),
  listen: listenSchema.optional(),
  auth: authSchema.optional(),
  sse: sseSchema.optional(),
  limits: limitsSchema.optional(),
  mcpServers: z
    .record(z.string(), serverSchema)
    .optional()
    .describe('MCP servers by name, in the shape other MCP clients use.'),
  workspaces: z
    .record(z.string().regex(WORKSPACE_NAME), workspaceSchema)
    .optional()
    .describe(
      'What each URL /mcp/<name> leads to; when absent, default holds all servers, and each has a workspace of its own name.',
    ),
  policies: z
    .record(z.string(), policySchema)
    .optional()
    .describe('Policies by name, for workspaces and for tokens (dragoman token create NAME --policy POLICY).'),
})
