import type { TestProject } from 'vitest/node'
import { startPostgres, whyNoPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string | undefined
  }
}

/** Starts one PostgreSQL for all tests of the memory store, and ends it after the last of them. */
export default async (project: TestProject): Promise<(() => Promise<void>) | undefined> => {
  const why = whyNoPostgres()
  if (why) console.warn(`The tests on PostgreSQL are skipped: ${why}.`)
  const server = why ? undefined : await startPostgres()
  project.provide('postgresUrl', server?.url)
  return server?.stop
}
