import type { Worker, WorkerOptions } from 'node:worker_threads'
import { isBuilt } from '../../std/package.ts'

type WorkerFile = ConstructorParameters<typeof Worker>[0]

/**
 * How a thread is started with a module, given without its extension. Run from source, a thread must register the loader
 * for TypeScript itself.
 */
export const workerArguments = (entry: URL, data: unknown, name: string): [WorkerFile, WorkerOptions] => {
  const options = { workerData: data, name, execArgv: [] }
  if (isBuilt) return [new URL(`${entry.href}.js`), options]
  const [loader, module] = [import.meta.resolve('tsx/esm/api'), `${entry.href}.ts`].map(url => JSON.stringify(url))
  return [
    `import(${loader}).then(({ register }) => { register(); return import(${module}) })`,
    { ...options, eval: true },
  ]
}
