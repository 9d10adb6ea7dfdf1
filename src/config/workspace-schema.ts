import * as z from 'zod'
import { flagSchema, mapOf, object, oneOfSchema, textList, textSchema, wholeNumber } from './schema-parts.ts'
import { budgetSchema, trimSchema } from './tool-list.ts'

const MAX_TOOL_NAME = 128
const LEAST_NAME_LENGTH = 40 // a prefix and a hash take 31 of them

/** Names of workspaces are part of a URL. */
export const WORKSPACE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

const globs = (what: string) => textList.optional().describe(what)

const patternsSchema = object({
  servers: globs('Servers by name.'),
  tools: globs('Tools as "<server>/<tool>".'),
  prompts: globs('Prompts as "<server>/<prompt>".'),
  resources: globs('Resources and resource templates by URI.'),
})

/** One entry of `policies`, or the `policy` of a workspace. */
export const policySchema = object({
  allow: patternsSchema
    .optional()
    .describe('Only these, "*" standing for any characters; a kind that is absent is allowed as a whole.'),
  deny: patternsSchema.optional().describe('Never these, even where they are allowed.'),
  readOnly: flagSchema.default(false).describe('Only tools whose annotations say that they change nothing.'),
}).describe('What callers see and use; everything else does not exist for them.')

const argumentValues = mapOf(z.unknown())

/** One entry of a workspace's `tools`. */
export const overlaySchema = object({
  name: textSchema
    .min(1, { error: 'expected a name' })
    .max(MAX_TOOL_NAME, { error: `expected at most ${MAX_TOOL_NAME} characters` })
    .optional()
    .describe("Shown instead of the tool's own name."),
  title: textSchema.optional(),
  description: textSchema.optional(),
  hidden: flagSchema.default(false).describe('As if the tool did not exist.'),
  annotations: argumentValues.optional().describe('Merged over its own annotations.'),
  arguments: object({
    fixed: argumentValues.optional().describe('Arguments that callers neither see nor change.'),
    default: argumentValues.optional().describe('Arguments for callers who leave them out.'),
  }).optional(),
}).describe('How one tool is shown and called differently from what its server says.')

const SERVERS = { error: 'expected an array of names of servers, or "*" for all' }

/** One entry of `workspaces`. */
export const workspaceSchema = object({
  servers: z
    .union([z.literal('*'), z.array(textSchema).min(1, SERVERS)], SERVERS)
    .describe('Names of servers of mcpServers, in the order they are shown; "*" for all that are not disabled.'),
  names: oneOfSchema(['prefix', 'slash', 'plain'])
    .optional()
    .describe(
      'How tools and prompts are called: "<server>__<name>" (prefix), "<server>/<name>" (slash), or as their servers call them (plain). When absent: prefix for several servers, plain for one.',
    ),
  nameLength: wholeNumber(LEAST_NAME_LENGTH, MAX_TOOL_NAME)
    .optional()
    .describe(
      'Most characters of a name; a longer one is cut and gets a hash. 64 for names with a prefix when absent; 48 for clients that add a prefix of their own.',
    ),
  instructions: textSchema.optional().describe('Sent to clients instead of what the servers say.'),
  strict: flagSchema.default(false).describe('A list fails when a server is missing from it.'),
  policy: z
    .union([textSchema, policySchema], { error: 'expected the name of a policy, or an object' })
    .optional()
    .describe('What callers see and use here: the name of one of policies, or a policy.'),
  budget: budgetSchema.optional(),
  trim: z
    .union([flagSchema, trimSchema], { error: 'expected true, false or an object' })
    .default(false)
    .describe('Shortens the definitions of tools that are listed; describe_tool returns the whole ones.'),
  tools: mapOf(overlaySchema).optional().describe('How single tools are shown and called, by "<server>/<tool>".'),
})
