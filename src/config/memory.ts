import { type MemoryEntry, memorySchema } from './memory-schema.ts'
import type { BuiltinServer, UnavailableServer } from './snapshot.ts'
import { type Environment, fillIn } from './variables.ts'

/** Reads the memory that comes with the gateway; a reference that cannot be filled in makes it unavailable. */
export const readMemory = (
  given: MemoryEntry = memorySchema.parse({}),
  env: Environment,
): BuiltinServer | UnavailableServer => {
  const faults: string[] = []
  const fill = (where: string, text: string): string => {
    const filled = fillIn(text, env)
    if (filled.kind === 'text') return filled.text
    faults.push(`memory.${where}: ${filled.reason}`)
    return ''
  }
  const web = (where: string, text: string): string => {
    const filled = fill(where, text)
    if (filled !== '' && !/^https?:$/.test(URL.parse(filled)?.protocol ?? ''))
      faults.push(`memory.${where} is not an address like https://api.example.com/v1`)
    return filled
  }
  const address = <E extends { readonly url: string; readonly key?: string | undefined }>(
    where: string,
    endpoint: E,
  ): E => ({
    ...endpoint,
    url: web(`${where}.url`, endpoint.url),
    ...(endpoint.key !== undefined && { key: fill(`${where}.key`, endpoint.key) }),
  })
  const { database, extraction, embeddings, ...rest } = given
  const read = {
    ...rest,
    ...(database !== undefined && { database: fill('database', database) }),
    ...(extraction && { extraction: address('extraction', extraction) }),
    ...(embeddings && { embeddings: address('embeddings', embeddings) }),
  }
  const [reason] = faults
  return reason === undefined ? { kind: 'builtin', builtin: 'memory', ...read } : { kind: 'unavailable', reason }
}
