import { dataDirectory } from '../data-dir.ts'
import { userConfigFiles } from '../find-config.ts'
import type { Environment } from '../variables.ts'

/** Which gateway `dragoman stdio` is to find or start. */
export interface StdioTarget {
  readonly workspace: string
  readonly config?: string | undefined // a file that it does not find by itself
  readonly data?: string | undefined // a data directory that is not the default one
}

/** How clients start `dragoman stdio`: by absolute paths, because applications have another PATH than shells. */
export const stdioCommand = (
  { workspace, config, data }: StdioTarget,
  [, main = '']: readonly string[] = process.argv,
): readonly [command: string, args: readonly string[]] => {
  const isNpx = main === '' || /[\\/]_npx[\\/]/.test(main)
  const [command, first] = isNpx ? ['npx', ['-y', 'dragoman']] : [process.execPath, [main]]
  const more = [
    ...(workspace === 'default' ? [] : ['--workspace', workspace]),
    ...(config === undefined ? [] : ['--config', config]),
    ...(data === undefined ? [] : ['--data', data]),
  ]
  return [command, [...first, 'stdio', ...more]]
}

/** What must be named so that `dragoman stdio` finds this gateway: only what it would not find by itself. */
export const stdioTargetOf = (
  gateway: { readonly config?: string | undefined; readonly data?: string | undefined },
  env: Environment,
): Omit<StdioTarget, 'workspace'> => {
  const { DRAGOMAN_DATA: _, ...rest } = env
  const isFound = gateway.config === undefined || userConfigFiles({ env }).includes(gateway.config)
  const isDefault = gateway.data === undefined || gateway.data === dataDirectory({ flag: undefined, env: rest })
  return { config: isFound ? undefined : gateway.config, data: isDefault ? undefined : gateway.data }
}
