import { once } from 'node:events'
import { PRIVATE_HEADERS } from '../fronts/http/response.ts'
import type { Recording, RecordingFileHeader, RecordingSummary } from '../protocol/recording.ts'
import type { RecorderState, RecordingList } from './api/recorder.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'
import { type ExportedExchange, selectConversations, toExported } from './export-selection.ts'

/** Which recordings are wanted; those of `before` and later are not. */
interface RecordingFilter {
  readonly before?: number | undefined
  readonly search?: string | undefined
  readonly method?: string | undefined
  readonly server?: string | undefined
  readonly workspace?: string | undefined
  readonly outcome?: string | undefined
  readonly principal?: string | undefined
  readonly client?: string | undefined
  readonly subject?: string | undefined
}

/** The flight recorder as the admin API uses it. */
export interface RecorderEndpointsOptions {
  readonly version: string
  readonly replica: () => string | undefined // undefined: there are no others
  /** Several processes of one gateway answer together, after a while. */
  readonly recorder: {
    state(): Awaitable<Omit<RecorderState, 'replica'>>
    query(
      filter: RecordingFilter,
      limit: number,
      searchesTexts: boolean,
    ): Promise<{
      readonly recordings: readonly RecordingSummary[]
      readonly next?: number | undefined
      readonly isPartial: boolean
    }>
    find(id: string): Awaitable<Recording | undefined>
    orderOf(id: string): Awaitable<number | undefined>
    switchTo(isOn: boolean): Awaitable<void>
    clear(): Awaitable<void>
  }
}

type Awaitable<T> = T | Promise<T>

const MEDIA = 'application/x-ndjson'
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 500
const MAX_EXPORTED = 10_000
const LONGEST_FILTER = 256
const NAMES = ['search', 'method', 'server', 'workspace', 'outcome', 'principal', 'client', 'subject'] as const
const FILTERS = {
  search: {
    type: 'string',
    description: 'in methods, names, clients, principals and, for owners, the text of messages',
  },
  method: { type: 'string' },
  server: { type: 'string' },
  workspace: { type: 'string' },
  outcome: {
    type: 'string',
    enum: ['running', 'ok', 'tool_error', 'error', 'denied', 'cancelled', 'input_required'],
  },
  principal: { type: 'string' },
  client: { type: 'string', description: 'a part of its name and version' },
  subject: { type: 'string', description: 'a part of the tool, prompt or URI' },
}
const FORGOTTEN =
  'it was forgotten to make room for later ones, cleared, or belongs to another replica or an earlier process; list the recordings again'

/** The endpoints of the flight recorder. Viewers see which calls were made, and owners what was said. */
export const createRecorderEndpoints = (options: RecorderEndpointsOptions): readonly AdminEndpoint[] => {
  const { recorder, replica, version } = options
  const state = async (): Promise<RecorderState> => {
    const name = replica()
    return { ...(await recorder.state()), ...(name && { replica: name }) }
  }

  const list = async ({ query, role }: AdminCall): Promise<RecordingList> => {
    const isOwner = role === 'owner'
    const limit = readLimit(query, DEFAULT_LIMIT, MAX_LIMIT)
    const { recordings, next, isPartial } = await recorder.query(await readFilter(query, recorder), limit, isOwner)
    return {
      ...(await state()),
      recordings: isOwner ? recordings : recordings.map(({ error: _error, ...row }) => row),
      ...(next !== undefined && { next: String(next) }),
      isPartial,
    }
  }

  const find = async (id: string): Promise<Recording> => {
    const found = await recorder.find(id)
    if (found) return found
    throw new AdminError(404, `There is no recording ${JSON.stringify(id)}: ${FORGOTTEN}`)
  }

  const exportFile = async ({ query, response, signal }: AdminCall): Promise<void> => {
    const given = query.getAll('id')
    const chosen = given.length > 0 ? [] : await selectAll(recorder, query)
    for (const id of given) chosen.push(toExported(await find(id)))
    const ids = await selectConversations(chosen, async id => recorder.find(id))
    const [only, ...others] = chosen.map(({ id }) => id)
    response.writeHead(200, {
      ...PRIVATE_HEADERS,
      'content-type': MEDIA,
      'content-disposition': `attachment; filename="${only && others.length === 0 ? `recording-${only}` : 'recordings'}.jsonl"`,
    })
    response.write(`${JSON.stringify(headerOf(version, replica()))}\n`)
    for (const id of ids) {
      if (signal.aborted) return
      const recording = await recorder.find(id) // a recording that was forgotten meanwhile is left out
      if (recording && !response.write(`${JSON.stringify(recording)}\n`))
        await once(response, 'drain', { signal }).catch(() => {})
    }
    response.end()
  }

  return [
    {
      method: 'GET',
      path: '/admin/recordings',
      access: 'viewer',
      summary: 'The exchanges that the flight recorder of this replica keeps, newest first',
      parameters: {
        before: { type: 'string', description: 'the `next` of the page before' },
        limit: { type: 'integer', description: `at most ${MAX_LIMIT}; ${DEFAULT_LIMIT} when absent` },
        ...FILTERS,
      },
      run: list,
    },
    {
      method: 'PATCH',
      path: '/admin/recordings',
      access: 'owner',
      summary: 'Switches the flight recorder on or off until the next start',
      body: {
        type: 'object',
        properties: { isOn: { type: 'boolean' } },
        required: ['isOn'],
        additionalProperties: false,
      },
      run: async ({ json }) => {
        await recorder.switchTo((await json()).get('isOn')?.asBoolean() === true)
        return state()
      },
    },
    {
      method: 'DELETE',
      path: '/admin/recordings',
      access: 'owner',
      summary: 'Forgets all recordings',
      run: async () => {
        await recorder.clear()
        return state()
      },
    },
    {
      method: 'GET',
      path: '/admin/recordings/export',
      access: 'owner',
      summary: 'Recordings as a file, one JSON object per line, for `dragoman replay`',
      parameters: {
        id: {
          type: 'string',
          description: 'only this recording, and those of the same conversation; may be given several times',
        },
        limit: { type: 'integer', description: `at most ${MAX_EXPORTED}; the rest of their conversations is added` },
        ...FILTERS,
      },
      media: MEDIA,
      isAudited: true,
      run: exportFile,
    },
    {
      method: 'GET',
      path: '/admin/recordings/{id}',
      access: 'owner',
      summary: 'One exchange with all its messages',
      run: ({ params }) => find(params.id ?? ''),
    },
  ]
}

/** All recordings that match, newest first. */
const selectAll = async (
  recorder: RecorderEndpointsOptions['recorder'],
  query: URLSearchParams,
): Promise<ExportedExchange[]> => {
  const limit = readLimit(query, MAX_EXPORTED, MAX_EXPORTED)
  const filter = await readFilter(query, recorder)
  const chosen: ExportedExchange[] = []
  let before = filter.before
  do {
    const page = await recorder.query({ ...filter, before }, limit - chosen.length, true)
    chosen.push(...page.recordings.map(toExported))
    const isFurther = page.next !== undefined && page.next < (before ?? Number.POSITIVE_INFINITY)
    before = isFurther ? page.next : undefined
  } while (before !== undefined && chosen.length < limit)
  return chosen
}

const readFilter = async (
  query: URLSearchParams,
  { orderOf }: Pick<RecorderEndpointsOptions['recorder'], 'orderOf'>,
): Promise<RecordingFilter> => {
  const before = query.get('before')
  const order = before === null ? undefined : /^\d{1,16}$/.test(before) ? Number(before) : await orderOf(before)
  if (before !== null && order === undefined)
    throw new AdminError(400, `"before" is not valid: use the "next" of a page, or the id of a recording`)
  const filter: Record<string, string> = {}
  for (const name of NAMES) {
    const value = query.get(name)
    if (value === null || value === '') continue
    if (value.length > LONGEST_FILTER)
      throw new AdminError(400, `"${name}" is too long: use at most ${LONGEST_FILTER} characters`)
    filter[name] = value
  }
  const { outcome } = filter
  if (outcome !== undefined && !FILTERS.outcome.enum.includes(outcome))
    throw new AdminError(400, `"outcome" is not valid: use one of ${FILTERS.outcome.enum.join(', ')}`)
  return { ...filter, before: order }
}

const readLimit = (query: URLSearchParams, preset: number, most: number): number => {
  const given = query.get('limit')
  if (given === null) return preset
  if (!/^[1-9]\d{0,8}$/.test(given)) throw new AdminError(400, `"limit" is not valid: use a number from 1 to ${most}`)
  return Math.min(Number(given), most)
}

const headerOf = (gateway: string, replica: string | undefined): RecordingFileHeader => ({
  format: 'dragoman-recording',
  version: 1,
  gateway,
  ...(replica && { replica }),
  exportedAt: Date.now(),
})
