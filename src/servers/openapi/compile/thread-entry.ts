import { parentPort, workerData } from 'node:worker_threads'
import { DocumentProblem } from '../plan.ts'
import { compileApi } from './compile.ts'
import type { CompileRequest, FromCompiler, PartRead } from './compile-in-thread.ts'

// The thread that compiles one document, and ends. Only it loads the parser.

const { text, url, settings } = workerData as CompileRequest
const waiting = new Map<string, (part: PartRead) => void>()
const post = (message: FromCompiler): void => parentPort?.postMessage(message)

parentPort?.on('message', (part: PartRead) => waiting.get(part.url)?.(part))

const readPart = (part: string): Promise<string> =>
  new Promise((resolve, reject) => {
    waiting.set(part, read => ('text' in read ? resolve(read.text) : reject(new Error(read.error))))
    post({ kind: 'read', url: part })
  })

const compile = async (): Promise<void> => {
  try {
    post({ kind: 'compiled', api: await compileApi(text, url, settings, readPart) })
  } catch (error) {
    if (!(error instanceof DocumentProblem)) throw error
    post({ kind: 'failed', reason: error.message })
  }
  parentPort?.close()
}

void compile()
