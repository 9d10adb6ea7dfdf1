import { z } from 'zod'

const text = z.string({ error: 'expected a string' }).min(1, { error: 'expected a string that is not empty' })
const count = (what: string) =>
  z
    .int({ error: 'expected a whole number from 1 up' })
    .min(1, { error: 'expected a whole number from 1 up' })
    .optional()
    .describe(what)

const endpoint = {
  url: text.describe('Base address of an OpenAI-compatible endpoint, like https://api.example.com/v1.'),
  key: text.optional().describe('Its key; write ${NAME} or ${file:PATH}.'),
  model: text.describe('The model to use.'),
}

/** `memory` of an entry with `"builtin": "memory"`. */
export const memorySchema = z
  .strictObject(
    {
      tenant: z
        .enum(['workspace', 'principal'], { error: 'expected "workspace" or "principal"' })
        .default('workspace')
        .describe('Who shares a memory: everybody in a workspace, or nobody.'),
      group: z
        .string({ error: 'expected a string' })
        .regex(/^[A-Za-z0-9_-]{1,255}$/, { error: 'expected letters, digits, "-" and "_"' })
        .default('main')
        .describe('The group of what names none.'),
      database: text
        .optional()
        .describe('A PostgreSQL address, postgres://…; a file in the data directory when absent.'),
      extraction: z
        .strictObject(
          {
            ...endpoint,
            smallModel: text.optional().describe('A cheaper model for comparing facts.'),
            dailyTokens: count('Most tokens in a day, for each memory.'),
            callsPerMinute: count('Most calls in a minute, for each memory.'),
          },
          { error: 'expected an object' },
        )
        .optional()
        .describe('A model that reads what is added; none when absent.'),
      embeddings: z
        .strictObject({ ...endpoint, dimensions: count('Dimensions to ask for.') }, { error: 'expected an object' })
        .optional()
        .describe('A model that helps to search by meaning; none when absent.'),
    },
    { error: 'expected an object' },
  )
  .describe('How "builtin": "memory" keeps what it is told.')

export type MemoryEntry = z.output<typeof memorySchema>
