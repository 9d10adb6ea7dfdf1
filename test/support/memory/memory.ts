import { onTestFinished } from 'vitest'
import type { Caller, Upstream } from '../../../src/protocol/exchange.ts'
import { createMemoryServer, type MemoryServerOptions } from '../../../src/servers/memory/memory.ts'
import { openSqliteStores } from '../../../src/servers/memory/open-stores.ts'
import { createRemember } from '../../../src/servers/memory/remember.ts'
import type { PlainObject } from '../../../src/wire/json/json.ts'
import { talk } from '../embedded.ts'
import { temporaryFolder } from './sqlite-store.ts'

/** A result of a tool of the memory server. */
export interface Answer {
  readonly content: readonly { readonly type: string; readonly text: string }[]
  readonly structuredContent: Readonly<Record<string, unknown>>
  readonly isError: boolean
}

/** What stands in the member `result` of an answer. */
export type Found = Readonly<Record<string, unknown>> & {
  readonly message?: string
  readonly error?: string
  readonly facts?: readonly { readonly uuid: string; readonly fact: string; readonly [member: string]: unknown }[]
  readonly nodes?: readonly { readonly uuid: string; readonly name: string; readonly [member: string]: unknown }[]
  readonly edges?: readonly { readonly uuid: string; readonly fact: string; readonly [member: string]: unknown }[]
  readonly episodes?: readonly { readonly uuid: string; readonly content: string; readonly name: string }[]
}

/** A memory server over files that go when the test is over, and ways to call it. */
export const startMemory = async (options: Partial<MemoryServerOptions> = {}) => {
  const server: Upstream = createMemoryServer({
    stores: openSqliteStores({ folder: await temporaryFolder() }),
    tenantBy: 'workspace',
    group: 'main',
    remember: createRemember({ extracts: false, embeds: false }),
    embed: async () => undefined,
    embeds: false,
    version: '1',
    wake: () => {},
    ...options,
  })
  onTestFinished(() => server.close())
  const call = async (name: string, args: PlainObject = {}, caller: Partial<Caller> = {}): Promise<Answer> =>
    (await (await talk(server, 'tools/call', { name, arguments: args }, { caller })).result()) as Answer
  const result = async (name: string, args: PlainObject = {}, caller: Partial<Caller> = {}): Promise<Found> =>
    (await call(name, args, caller)).structuredContent.result as Found
  return { server, call, result }
}
