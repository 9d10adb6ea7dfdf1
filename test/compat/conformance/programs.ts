import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { startNode } from './children.ts'

const ROOT = new URL('../../../', import.meta.url).pathname
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const PROJECT = join(ROOT, 'test/compat/conformance/tsconfig.json')

/** Where a program of this folder's `test/` stands once it is compiled. */
export type Programs = (path: string) => string

/**
 * Compiles what is started again and again: compiled, a program starts in half the time. The links let it find what
 * the sources find.
 */
export const compilePrograms = async (folder: string): Promise<Programs> => {
  await mkdir(folder)
  for (const name of ['node_modules', 'dist']) await symlink(join(ROOT, name), join(folder, name), 'junction')
  await symlink(join(ROOT, 'package.json'), join(folder, 'package.json'))
  const compiler = startNode([TSC, '-p', PROJECT, '--outDir', join(folder, 'test')])
  if ((await compiler.ended) !== 0) throw new Error(`The programs cannot be compiled:\n${compiler.tail()}`)
  return path => join(folder, 'test', path)
}
