import { type DefinedServer, defineServer } from '../../src/servers/define/define.ts'
import { resource } from '../../src/servers/define/resources.ts'
import { tool } from '../../src/servers/define/tools.ts'

const MIB = 1024 * 1024

export const LARGE_TEXT = 'x'.repeat(40 * MIB)
export const WATCHED_URI = 'test://watched'
export const SLOW_MS = 300

/** A server in the process of a replica; its tools say which replica that is, and `calls` counts what they have begun. */
export const createReplicaServer = (at: number, calls: string[] = []): DefinedServer => {
  const say = (name: string): string => {
    calls.push(`${name} ${at}`)
    return `replica ${at}`
  }
  return defineServer({
    name: 'test',
    version: '1',
    tools: [
      tool({ name: 'where', description: 'Says where it runs', run: () => say('where') }),
      tool({ name: 'large', description: 'Returns 40 MiB', run: () => LARGE_TEXT }),
      tool({
        name: 'slow',
        description: 'Reports progress, and ends later',
        run: async (_, call) => {
          await call.progress(1, 2, 'begun')
          await waitFor(SLOW_MS, call.signal)
          return say('slow')
        },
      }),
      tool({
        name: 'silent',
        description: 'Sends nothing until it ends',
        run: async (_, call) => {
          const text = say('silent')
          await waitFor(5 * SLOW_MS, call.signal)
          return text
        },
      }),
      tool({
        name: 'flood',
        description: 'Sends 1 MiB as often as its client reads it, at most a hundred times',
        run: async (_, call) => {
          for (let i = 0; i < 100; i++) {
            say('flood')
            await call.log('error', 'x'.repeat(MIB))
          }
          return 'done'
        },
      }),
      tool({
        name: 'update',
        description: 'Announces an update',
        run: (_, call) => {
          call.changed.updated(WATCHED_URI)
          return say('update')
        },
      }),
      tool({
        name: 'log',
        description: 'Logs twice',
        run: async (_, call) => {
          await call.log('debug', 'detail')
          await call.log('error', 'problem')
          return say('log')
        },
      }),
    ],
    resources: [resource({ uri: WATCHED_URI, name: 'watched', read: () => 'text' })],
  })
}

const waitFor = (ms: number, signal: { onAbort(listener: () => void): unknown }): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.onAbort(() => {
      clearTimeout(timer)
      resolve()
    })
  })
