import { type MemoryEntry, memorySchema, type ServerEntry } from './schema.ts'
import type { BuiltinServer, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn, fillInPath } from './variables.ts'

/** Reads a server that comes with the gateway. */
export const readBuiltin = (
  builtin: NonNullable<ServerEntry['builtin']>,
  { root, showHidden, memory }: ServerEntry,
  env: Environment,
): BuiltinServer | UnavailableServer => {
  if (builtin === 'memory') return readMemory(memory, env)
  if (builtin !== 'files') return { kind: 'builtin', builtin }
  const filled = root === undefined ? undefined : fillInPath(root, env)
  if (filled?.kind === 'missing') return { kind: 'unavailable', reason: `root: ${filled.reason}` }
  return { kind: 'builtin', builtin, root: filled?.text ?? process.cwd(), ...(showHidden && { showHidden }) }
}

/** Reads the settings of the built-in memory; a reference that cannot be filled in makes the server unavailable. */
const readMemory = (
  given: MemoryEntry = memorySchema.parse({}),
  env: Environment,
): BuiltinServer | UnavailableServer => {
  const missing: string[] = []
  const fill = (where: string, text: string): string => {
    const filled = fillIn(text, env)
    if (filled.kind === 'text') return filled.text
    missing.push(`memory.${where}: ${filled.reason}`)
    return ''
  }
  const fillUrl = (where: string, text: string): string => {
    const filled = fill(where, text)
    if (filled !== '' && !/^https?:$/.test(URL.parse(filled)?.protocol ?? ''))
      missing.push(`memory.${where} is not an address like https://api.example.com/v1`)
    return filled
  }
  const fillEndpoint = <E extends { readonly url: string; readonly key?: string | undefined }>(
    where: string,
    endpoint: E,
  ): E => ({
    ...endpoint,
    url: fillUrl(`${where}.url`, endpoint.url),
    ...(endpoint.key !== undefined && { key: fill(`${where}.key`, endpoint.key) }),
  })
  const { database, extraction, embeddings, ...rest } = given
  const read = {
    ...rest,
    ...(database !== undefined && { database: fill('database', database) }),
    ...(extraction && { extraction: fillEndpoint('extraction', extraction) }),
    ...(embeddings && { embeddings: fillEndpoint('embeddings', embeddings) }),
  }
  const [reason] = missing
  return reason === undefined ? { kind: 'builtin', builtin: 'memory', ...read } : { kind: 'unavailable', reason }
}
