import { z } from 'zod'

const text = z.string({ error: 'expected a string' })
const flag = z.boolean({ error: 'expected true or false' })
const OBJECT = { error: 'expected an object' }
const LONGEST_NAME = 128

/** What may stand in a URL as the name of a workspace. */
export const WORKSPACE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

const globs = (what: string) => z.array(text, { error: 'expected an array of strings' }).optional().describe(what)

const patternsSchema = z.strictObject(
  {
    servers: globs('Servers by name.'),
    tools: globs('Tools as "<server>/<tool>".'),
    prompts: globs('Prompts as "<server>/<prompt>".'),
    resources: globs('Resources and resource templates by URI.'),
  },
  OBJECT,
)

/** One entry of `policies`, or the policy of a workspace written in its place. */
export const policySchema = z
  .strictObject(
    {
      allow: patternsSchema
        .optional()
        .describe('Only these, "*" standing for any characters; a kind that is absent is allowed as a whole.'),
      deny: patternsSchema.optional().describe('Never these, even where they are allowed.'),
      readOnly: flag.default(false).describe('Only tools whose annotations say that they change nothing.'),
    },
    OBJECT,
  )
  .describe('What may be seen and used; everything else is as if it did not exist.')

const argumentsSchema = z.strictObject(
  {
    fixed: z.record(z.string(), z.unknown(), OBJECT).optional().describe('Arguments no caller can see or change.'),
    default: z.record(z.string(), z.unknown(), OBJECT).optional().describe('Arguments for callers who leave them out.'),
  },
  OBJECT,
)

/** One entry of a workspace's `tools`. */
export const overlaySchema = z
  .strictObject(
    {
      name: text
        .min(1, { error: 'expected a name' })
        .max(LONGEST_NAME, { error: `expected at most ${LONGEST_NAME} characters` })
        .optional()
        .describe('Shown instead of its own name.'),
      title: text.optional(),
      description: text.optional(),
      hidden: flag.default(false).describe('As if the tool did not exist.'),
      annotations: z.record(z.string(), z.unknown(), OBJECT).optional().describe('Laid over its own annotations.'),
      arguments: argumentsSchema.optional(),
    },
    OBJECT,
  )
  .describe('How one tool is shown and called differently from what its server says.')

const NAMES = ['prefix', 'slash', 'plain'] as const
const SERVERS = { error: 'expected an array of names of servers, or "*" for all' }

/** One entry of `workspaces`. */
export const workspaceSchema = z.strictObject(
  {
    servers: z
      .union([z.literal('*'), z.array(text).min(1, SERVERS)], SERVERS)
      .describe('Names of servers of mcpServers, in the order they are shown; "*" for all that are not disabled.'),
    names: z
      .enum(NAMES, { error: 'expected one of "prefix", "slash", "plain"' })
      .optional()
      .describe(
        'How tools and prompts are called: "<server>__<name>" (prefix), "<server>/<name>" (slash), or as their servers call them (plain). When absent: prefix for several servers, plain for one.',
      ),
    instructions: text.optional().describe('Told to clients instead of what the servers say.'),
    strict: flag.default(false).describe('A list fails when a server is missing from it.'),
    policy: z
      .union([text, policySchema], { error: 'expected the name of a policy, or an object' })
      .optional()
      .describe('What may be seen and used here: the name of one of policies, or a policy.'),
    tools: z
      .record(z.string(), overlaySchema, OBJECT)
      .optional()
      .describe('How single tools are shown and called, by "<server>/<tool>".'),
  },
  OBJECT,
)
