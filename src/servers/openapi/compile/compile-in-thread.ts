import { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../../std/package.ts'
import { Semaphore } from '../../../std/semaphore.ts'
import { workerArguments } from '../../thread/worker-arguments.ts'
import { type CompiledApi, type CompileSettings, DocumentProblem } from '../plan.ts'

/** What the thread is given. */
export interface CompileRequest {
  readonly text: string
  readonly url: string // of the document; other files are relative to it
  readonly settings: CompileSettings
}

/** A further file that the thread has asked for, or why it cannot be read. */
export type PartRead =
  | { readonly url: string; readonly text: string }
  | { readonly url: string; readonly error: string }

export type FromCompiler =
  | { readonly kind: 'read'; readonly url: string }
  | { readonly kind: 'compiled'; readonly api: CompiledApi }
  | { readonly kind: 'failed'; readonly reason: string }

const MOST_MS = 60_000
const compiling = new Semaphore(2) // each may need much memory
const MEMORY_MIB = 1024
const ENTRY = moduleUrl('servers/openapi/compile/thread-entry')

/**
 * Compiles a document in a thread of its own: a large one takes seconds, in which other calls must not wait, and a
 * hostile one ends the thread only. Rejects with DocumentProblem.
 */
export const compileInThread = async (request: CompileRequest, readPart: ReadPart): Promise<CompiledApi> => {
  const release = await compiling.acquire()
  return startCompiler(request, readPart).finally(release)
}

type ReadPart = (url: string) => Promise<string>

const startCompiler = (request: CompileRequest, readPart: ReadPart): Promise<CompiledApi> =>
  new Promise((resolve, reject) => {
    const [file, options] = workerArguments(ENTRY, request, 'openapi')
    const worker = new Worker(file, { ...options, resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB } })
    const end = (): void => {
      clearTimeout(timer)
      void worker.terminate()
    }
    const fail = (reason: string, isLasting = false): void => {
      end()
      reject(new DocumentProblem(reason, isLasting))
    }
    const timer = setTimeout(() => fail(`has a document that takes longer than ${MOST_MS / 1000} s to read`), MOST_MS)
    worker.on('message', (message: FromCompiler) => {
      if (message.kind === 'failed') return fail(message.reason, true)
      if (message.kind === 'read') return void sendPart(worker, message.url, readPart)
      end()
      resolve(message.api)
    })
    worker.on('error', error => fail(`has a document that cannot be read: ${error.message}`))
    worker.on('exit', () => fail('has a document that cannot be read: its thread ended'))
  })

const sendPart = async (worker: Worker, url: string, readPart: ReadPart): Promise<void> => {
  const answer = (part: PartRead): void => worker.postMessage(part)
  await readPart(url).then(
    text => answer({ url, text }),
    (error: unknown) => answer({ url, error: error instanceof Error ? error.message : String(error) }),
  )
}
