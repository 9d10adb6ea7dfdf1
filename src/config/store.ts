import * as z from 'zod'
import { fillInSection } from './fill-in-section.ts'
import type { ConfigReport } from './problems.ts'
import { readWith } from './read-with.ts'
import { object, textSchema } from './schema-parts.ts'
import type { StoreConfig } from './snapshot.ts'
import type { Environment } from './variables.ts'

const POSTGRES_URL = /^postgres(ql)?:\/\//i
const SHORTEST_SECRET = 16

const url = textSchema.min(1, { error: 'expected an address like postgres://user@host/name' })
const secret = textSchema.min(1, { error: 'expected a secret' })

/** `store`: where the state of all replicas is kept. */
export const storeSchema = z
  .union(
    [
      url.describe('The address of a PostgreSQL database, postgres://…'),
      object({
        url: url.describe('The address of a PostgreSQL database, postgres://…'),
        secret: z
          .union([secret, z.array(secret).min(1)], { error: 'expected a text, or a list of texts' })
          .optional()
          .describe(
            'Seals what is stored, and the ids of sessions; a list while it is replaced: the first seals, all open. Created in the database when absent.',
          ),
      }),
    ],
    { error: 'expected an address like postgres://user@host/name, or an object with "url" and "secret"' },
  )
  .describe(
    'Where state is kept: a PostgreSQL database that several replicas share; a file in the data directory when absent.',
  )

/** The section `store` with its variables filled in; undefined if the file has none. */
export const readStore = (raw: unknown, env: Environment, report: ConfigReport): StoreConfig | undefined => {
  if (raw === undefined) return undefined
  const before = report.problems.length
  const filled = fillInSection(raw, env, ['store'], report)
  if (report.problems.length > before) return undefined
  const read = readWith(storeSchema, filled, ['store'], report)
  if (read === undefined) return undefined
  const given = typeof read === 'string' ? { url: read } : read
  const at = typeof read === 'string' ? ['store'] : ['store', 'url']
  if (!POSTGRES_URL.test(given.url) || !URL.canParse(given.url))
    report.problems.push({ path: at, message: 'expected an address like postgres://user@host/name' })
  const secrets = given.secret === undefined ? [] : [given.secret].flat()
  for (const short of secrets.filter(({ length }) => length < SHORTEST_SECRET).slice(0, 1))
    report.problems.push({
      path: ['store', 'secret'],
      message: `expected at least ${SHORTEST_SECRET} characters, not ${short.length}; make one with: openssl rand -base64 32`,
    })
  const [first, ...others] = secrets
  return { url: given.url, secrets: first === undefined ? undefined : [first, ...others] }
}
