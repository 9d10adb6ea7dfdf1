import type { MemoryServerList } from './api/memory.ts'
import { type AdminEndpoint, AdminError } from './endpoints.ts'
import {
  createMemoryAccess,
  limitIn,
  MEMORY_PARAMETERS,
  type MemoryEndpointsOptions,
  SCOPE_PARAMETERS,
  scopeOf,
} from './memory-access.ts'
import { createMemoryChanges } from './memory-changes.ts'
import { createMemoryTransfers, IMPORT_FORMATS, MOST_IMPORT_BYTES } from './memory-transfers.ts'

const LIMIT = { type: 'integer', minimum: 1 }
const MOST_FOUND = 100
const MOST_ITEMS = 500
const MOST_NODES = 2000
const LONGEST_QUERY = 1000
const KINDS = ['episode', 'fact'] as const

/** The endpoints for the memories of agents: what they hold, and what their owner may change. */
export const createMemoryEndpoints = (options: MemoryEndpointsOptions): readonly AdminEndpoint[] => {
  const access = createMemoryAccess(options)
  return [
    {
      method: 'GET',
      path: '/admin/memory',
      access: 'viewer',
      summary: 'The memory servers, and the memories that the caller may see',
      run: async (call): Promise<MemoryServerList> => ({
        servers: await access.list(call),
        mostImportBytes: MOST_IMPORT_BYTES,
        formats: IMPORT_FORMATS,
      }),
    },
    {
      method: 'GET',
      path: '/admin/memory/stats',
      access: 'viewer',
      summary: 'Counts of a memory, and the latest changes by hand',
      parameters: MEMORY_PARAMETERS,
      run: call => access.run(call, 'stats'),
    },
    {
      method: 'GET',
      path: '/admin/memory/search',
      access: 'viewer',
      summary: 'Facts, entities and passages that answer a query',
      parameters: { ...SCOPE_PARAMETERS, q: { type: 'string' }, limit: LIMIT },
      run: call => {
        const query = call.query.get('q')?.trim() ?? ''
        if (query === '') throw new AdminError(400, 'q: is missing; write what to search for')
        if (query.length > LONGEST_QUERY)
          throw new AdminError(400, `q: has ${query.length} characters; at most ${LONGEST_QUERY} are searched for`)
        return access.run(call, 'search', query, scopeOf(call), limitIn(call, 20, MOST_FOUND))
      },
    },
    {
      method: 'GET',
      path: '/admin/memory/timeline',
      access: 'viewer',
      summary: 'Episodes and facts by time, newest first',
      parameters: {
        ...SCOPE_PARAMETERS,
        kind: { type: 'string', enum: KINDS },
        after: { type: 'string', description: '"next" of the page before' },
        limit: LIMIT,
      },
      run: call => {
        const [kind, after] = [call.query.get('kind') || undefined, call.query.get('after') || undefined]
        const known = KINDS.find(each => each === kind)
        if (kind !== undefined && !known) throw new AdminError(400, `kind: expected ${KINDS.join(' or ')}`)
        return access.run(call, 'timeline', {
          ...scopeOf(call),
          kind: known,
          after,
          limit: limitIn(call, 200, MOST_ITEMS),
        })
      },
    },
    {
      method: 'GET',
      path: '/admin/memory/graph',
      access: 'viewer',
      summary: 'The most connected entities and the facts between them',
      parameters: { ...SCOPE_PARAMETERS, limit: LIMIT },
      run: call => access.run(call, 'graph', scopeOf(call), limitIn(call, 1000, MOST_NODES)),
    },
    {
      method: 'GET',
      path: '/admin/memory/episodes/{id}',
      access: 'viewer',
      summary: 'One episode with its text, entities and facts',
      parameters: MEMORY_PARAMETERS,
      run: call => access.run(call, 'episode', call.params.id ?? ''),
    },
    {
      method: 'GET',
      path: '/admin/memory/entities/{id}',
      access: 'viewer',
      summary: 'One entity with its facts over time, its neighbours and episodes',
      parameters: SCOPE_PARAMETERS,
      run: call => access.run(call, 'entity', call.params.id ?? '', scopeOf(call)),
    },
    {
      method: 'GET',
      path: '/admin/memory/jobs',
      access: 'viewer',
      summary: 'Background jobs that wait, run or have failed',
      parameters: MEMORY_PARAMETERS,
      run: async call => ({ jobs: await access.run(call, 'jobs') }),
    },
    ...createMemoryChanges(access),
    ...createMemoryTransfers(access),
  ]
}
