import type { ConfigReport } from './problems.ts'
import { flagSchema, object, oneOfSchema, textList, textSchema, wholeNumber } from './schema-parts.ts'
import type { ServerConfig, WorkspaceConfig } from './snapshot.ts'

// Settings of a workspace that keep its list of tools small.

/** How large the list of tools may be. Above it, most tools are found by a search. */
export interface ToolBudget {
  readonly tokens: number
  readonly favourites?: readonly string[] | undefined // globs of `<server>/<tool>`; undefined: the most used tools
  readonly embeddings?: string | undefined // a memory server, whose model also ranks tools; undefined: words rank them
}

/** What is left out of the definitions that are listed. */
export interface ToolTrim {
  readonly descriptions: number // characters of a description, cut at a sentence
  readonly schemas: boolean // without keywords that models can do without
  readonly outputSchema: 'keep' | 'drop'
}

export const DEFAULT_TRIM: ToolTrim = { descriptions: 300, schemas: true, outputSchema: 'drop' }

const LEAST_BUDGET = 1000 // tokens: the gateway's own tools take about half of it

/** The `budget` of a workspace. */
export const budgetSchema = object({
  tokens: wholeNumber(LEAST_BUDGET).describe('Tokens, estimated, that the list of tools may have.'),
  favourites: textList
    .optional()
    .describe(
      'Tools that are listed when the others are not, as "<server>/<tool>", "*" standing for any characters. When absent: the most used ones.',
    ),
  embeddings: textSchema
    .optional()
    .describe('A "builtin": "memory" server: the model of its "embeddings" also ranks tools. When absent: words do.'),
}).describe(
  'A list of tools above this size is replaced by tools that search, describe and call the others, and by favourites.',
)

/** A budget may only name a memory that has a model for embeddings. */
export const checkToolEmbeddings = (
  workspaces: readonly WorkspaceConfig[],
  servers: readonly ServerConfig[],
  report: ConfigReport,
): void => {
  for (const { name, budget } of workspaces) {
    if (budget?.embeddings === undefined) continue
    const server = servers.find(each => each.name === budget.embeddings)
    if (server?.kind === 'unavailable') continue // its state says why
    if (server?.kind === 'builtin' && server.builtin === 'memory' && server.embeddings) continue
    report.problems.push({
      path: ['workspaces', name, 'budget', 'embeddings'],
      message: 'expected the name of a "builtin": "memory" server whose "memory" has "embeddings"',
    })
  }
}

const LEAST_DESCRIPTION = 40

/** The `trim` of a workspace, besides `true` and `false`. */
export const trimSchema = object({
  descriptions: wholeNumber(LEAST_DESCRIPTION)
    .default(DEFAULT_TRIM.descriptions)
    .describe('Characters of a description; a longer one is cut after a sentence.'),
  schemas: flagSchema
    .default(DEFAULT_TRIM.schemas)
    .describe(
      'Leave out "$schema", "examples", titles that repeat a name, and "additionalProperties" if it is the default.',
    ),
  outputSchema: oneOfSchema(['keep', 'drop'])
    .default(DEFAULT_TRIM.outputSchema)
    .describe('Whether output schemas are listed; models seldom see them.'),
})
