import { z } from 'zod'
import { DEFAULT_LIMITS, DEFAULT_LISTEN, DEFAULT_TIMEOUT_MS, type Limits } from './snapshot.ts'

const LONGEST_TIMER_MS = 2 ** 31 - 1

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

const bytes = (name: keyof Limits, what: string) =>
  whole(1, Number.MAX_SAFE_INTEGER).default(DEFAULT_LIMITS[name]).describe(what)
const milliseconds = (name: keyof Limits, what: string) =>
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
    },
    { error: 'expected an object' },
  )
  .describe('Where the gateway listens, and for whom.')

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
      shutdownMs: milliseconds('shutdownMs', 'given to calls in flight when the gateway closes.'),
      batchSize: bytes('batchSize', 'Most messages in one batch.'),
    } satisfies Record<keyof Limits, z.ZodType>,
    { error: 'expected an object' },
  )
  .describe('Bounds on size, number and time.')

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
          'HTTP headers sent with every request; ${NAME} and ${NAME:-default} are filled in from the environment.',
        ),
      type: oneOf(['http', 'streamable-http', 'streamableHttp', 'streamable_http', 'sse', 'stdio'])
        .optional()
        .describe('How the server is reached; found out when absent. sse and stdio cannot be served in this release.'),
      command: text.optional().describe('Program to start; cannot be served in this release.'),
      args: texts.optional(),
      env: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean()], { error: 'expected a string' }), {
          error: 'expected an object of strings',
        })
        .optional(),
      cwd: text.optional(),
      timeout: whole(1, LONGEST_TIMER_MS)
        .default(DEFAULT_TIMEOUT_MS)
        .describe('Milliseconds of silence after which a call is given up; progress starts them again.'),
      disabled: flag.default(false),
      builtin: oneOf(['demo']).optional().describe('A server that comes with the gateway.'),
      era: oneOf(['auto', 'modern', 'legacy'])
        .default('auto')
        .describe('Which protocol to speak with it: modern is 2026-07-28, legacy everything before.'),
    },
    { error: 'expected an object' },
  )
  .meta({ anyOf: ['url', 'httpUrl', 'command', 'builtin'].map(key => ({ required: [key] })) })

export type ServerEntry = z.output<typeof serverSchema>

export const WORKSPACE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** One entry of `workspaces`. */
export const workspaceSchema = z.strictObject(
  {
    servers: z
      .array(text, { error: 'expected an array with the name of one server' })
      .length(1, { error: 'expected exactly one server: a workspace cannot hold several in this release' })
      .describe('The name of one server of mcpServers.'),
  },
  { error: 'expected an object' },
)

/** The whole file. */
export const fileSchema = z.looseObject({
  $schema: text.optional(),
  listen: listenSchema.optional(),
  limits: limitsSchema.optional(),
  mcpServers: z
    .record(z.string(), serverSchema)
    .optional()
    .describe('MCP servers by name, in the shape other MCP clients use.'),
  workspaces: z
    .record(z.string().regex(WORKSPACE_NAME), workspaceSchema)
    .optional()
    .describe('What each URL /mcp/<name> leads to; when absent, every server has a workspace of its own name.'),
})
