import type { EntityChange, FactChange, NewMemory } from '../protocol/memory-operations.ts'
import type { ForgetRequest } from '../protocol/memory-views.ts'
import { type AdminCall, type AdminEndpoint, AdminError, type AdminSchema } from './endpoints.ts'
import { MEMORY_PARAMETERS, type MemoryAccess } from './memory-access.ts'

const TEXT = { type: 'string' }
const DATE = { type: ['string', 'null'], description: 'ISO 8601; null removes it' }
const MOST_TEXT_BYTES = 4 * 1024 * 1024 // of a request; an episode has at most 2 MiB

const object = (properties: Readonly<Record<string, AdminSchema>>, required: readonly string[] = []): AdminSchema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

const NEW_MEMORY = object(
  {
    text: TEXT,
    name: TEXT,
    source: { type: 'string', enum: ['text', 'message', 'json'] },
    at: { type: 'string', description: 'ISO 8601: when it happened; default: now' },
    group: TEXT,
  },
  ['text'],
)
const ENTITY_CHANGE = object({ name: TEXT, summary: TEXT, labels: { type: 'array', items: TEXT } })
const FACT_CHANGE = object({ text: TEXT, relation: TEXT, validFrom: DATE, validUntil: DATE })
const FORGET = object(
  {
    kind: { type: 'string', enum: ['group', 'entity', 'subject'] },
    group: { type: 'string', description: 'of the kinds "group" and "subject"' },
    id: { type: 'string', description: 'of the kind "entity"' },
    name: { type: 'string', description: 'of the kind "subject"' },
  },
  ['kind'],
)
const RETRY = object({ job: { type: 'integer', description: 'default: all that have failed' } })

/** The endpoints that change a memory, for its owner. */
export const createMemoryChanges = (access: MemoryAccess): readonly AdminEndpoint[] => {
  const owner = { access: 'owner', parameters: MEMORY_PARAMETERS } as const
  return [
    {
      ...owner,
      method: 'POST',
      path: '/admin/memory/episodes',
      summary: 'Adds a memory',
      body: NEW_MEMORY,
      maxBodyBytes: MOST_TEXT_BYTES,
      run: async call => access.run(call, 'add', await bodyOf<NewMemory>(call)),
    },
    {
      ...owner,
      method: 'DELETE',
      path: '/admin/memory/episodes/{id}',
      summary: 'Deletes one episode, and what only it states',
      isEmpty: true,
      run: call => access.run(call, 'deleteEpisode', call.params.id ?? ''),
    },
    {
      ...owner,
      method: 'PATCH',
      path: '/admin/memory/entities/{id}',
      summary: 'Changes the name, the summary or the labels of an entity',
      body: ENTITY_CHANGE,
      run: async call => access.run(call, 'changeEntity', call.params.id ?? '', await bodyOf<EntityChange>(call)),
    },
    {
      ...owner,
      method: 'PATCH',
      path: '/admin/memory/facts/{id}',
      summary: 'Corrects a fact, or ends it with "validUntil"',
      body: FACT_CHANGE,
      isEmpty: true,
      run: async call => access.run(call, 'changeFact', call.params.id ?? '', await bodyOf<FactChange>(call)),
    },
    {
      ...owner,
      method: 'DELETE',
      path: '/admin/memory/facts/{id}',
      summary: 'Deletes one fact',
      isEmpty: true,
      run: call => access.run(call, 'deleteFact', call.params.id ?? ''),
    },
    {
      ...owner,
      method: 'POST',
      path: '/admin/memory/forget/preview',
      summary: 'What would be erased; nothing is',
      body: FORGET,
      isAudited: false,
      run: async call => access.run(call, 'planForget', await forgetOf(call)),
    },
    {
      ...owner,
      method: 'POST',
      path: '/admin/memory/forget',
      summary: 'Erases a group, an entity or a subject for good, and proves it',
      body: FORGET,
      run: async call => access.run(call, 'forget', await forgetOf(call)),
    },
    {
      ...owner,
      method: 'POST',
      path: '/admin/memory/jobs/retry',
      summary: 'Starts one failed job again, or all of them',
      body: RETRY,
      run: async call => {
        const { job = 'all' } = await bodyOf<{ readonly job?: number }>(call)
        return { retried: await access.run(call, 'retry', job) }
      },
    },
  ]
}

/** The body, which has been checked against the schema of its endpoint. */
const bodyOf = async <T>(call: AdminCall): Promise<T> => (await call.json()).toValue() as T

const forgetOf = async (call: AdminCall): Promise<ForgetRequest> => {
  const { kind, group, id, name } =
    await bodyOf<Readonly<Record<'kind' | 'group' | 'id' | 'name', string | undefined>>>(call)
  if (kind === 'group' && group !== undefined) return { kind, group }
  if (kind === 'entity' && id !== undefined) return { kind, id }
  if (kind === 'subject' && name !== undefined) return { kind, name, group }
  const needed = { group: 'group', entity: 'id', subject: 'name' }[kind ?? '']
  throw new AdminError(400, `The body is not valid: to forget by "${kind}", give "${needed}"`)
}
