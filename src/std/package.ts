import { readFileSync } from 'node:fs'

// In the build, all code is in dist/program/, so this module finds files as from its place in src/. A module deeper in src/
// would look for them in the wrong folder.

/** The version of this package, as package.json has it. */
export const readVersion = (): string => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** Where a module of the package is, given its path in src/ without the extension: a thread starts with a file. */
export const moduleUrl = (path: string): URL => new URL(`../${path}`, import.meta.url)

/** Whether the program runs from its build. From its sources, threads need a loader for TypeScript. */
export const isBuilt = import.meta.url.endsWith('.js')
