import { inject } from 'vitest'
import type { MemoryStore } from '../../../src/servers/memory/store.ts'
import * as postgres from './postgres-store.ts'
import * as sqlite from './sqlite-store.ts'

/** A database engine under test. */
export interface TestEngine {
  readonly name: string
  readonly driver: RegExp
  /** A store in a database of its own; row ids begin with 1. `path` is the file or the schema. */
  temporaryStore(now?: () => number): Promise<MemoryStore & { readonly path: string }>
}

const hasPostgres = inject('postgresUrl') !== undefined

/** The engines on which every test of the memory store runs, as `describe.each(ENGINES)('$name', …)`. */
export const ENGINES: readonly TestEngine[] = [
  { name: 'SQLite', driver: /sqlite/, temporaryStore: sqlite.temporaryStore },
  ...(!hasPostgres ? [] : [{ name: 'PostgreSQL', driver: /^pg$/, temporaryStore: postgres.temporaryStore }]),
]
