import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RealServer } from './real-servers.ts'

const run = promisify(execFile)
const INSTALL_MS = 240_000

/** How an installed server is started, as an entry of the configuration. */
export interface InstalledServer {
  readonly name: string
  readonly version: string
  readonly entry: { readonly command: string; readonly args: readonly string[]; readonly env: Record<string, string> }
}

/** Installs a server into a folder of its own, once; rejects with the reason. */
export const installServer = async (server: RealServer, root: string): Promise<InstalledServer> => {
  const folder = join(root, `${server.registry}-${server.package.replace(/[^a-z0-9.-]+/gi, '_')}`)
  await mkdir(folder, { recursive: true })
  return server.registry === 'npm' ? installNpm(server, folder) : installPypi(server, folder)
}

const started = (server: RealServer, version: string, command: string, first: readonly string[]): InstalledServer => ({
  name: server.package.replace(/^@/, '').replace(/[^a-z0-9]+/gi, '-'),
  version,
  entry: { command, args: [...first, ...(server.args ?? [])], env: { ...server.env } },
})

const installNpm = async (server: RealServer, folder: string): Promise<InstalledServer> => {
  const home = join(folder, 'node_modules', server.package)
  if (!existsSync(join(home, 'package.json'))) {
    await writeFile(join(folder, 'package.json'), '{"private":true}')
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-package-lock', '--loglevel=error']
    await run('npm', ['install', ...flags, server.package], { cwd: folder, timeout: INSTALL_MS })
  }
  const { version, bin } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8')) as {
    version: string
    bin?: string | Record<string, string>
  }
  const program = typeof bin === 'string' ? bin : (bin?.[server.program ?? ''] ?? Object.values(bin ?? {})[0])
  if (program === undefined) throw new Error('it has no program')
  return started(server, version, process.execPath, [await realpath(join(home, program))])
}

const installPypi = async (server: RealServer, folder: string): Promise<InstalledServer> => {
  const venv = join(folder, 'venv')
  const python = join(venv, 'bin', 'python')
  if (!existsSync(join(folder, 'installed'))) {
    await run('python3', ['-m', 'venv', venv], { timeout: INSTALL_MS })
    await run(python, ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', server.package], {
      timeout: INSTALL_MS,
    })
    await writeFile(join(folder, 'installed'), '')
  }
  const programs = await readdir(join(venv, 'bin'))
  const program = server.program ?? server.package
  if (!programs.includes(program)) throw new Error(`it has no program ${program}`)
  const code = `import importlib.metadata as m; print(m.version(${JSON.stringify(server.package)}))`
  const { stdout } = await run(python, ['-c', code])
  return started(server, stdout.trim(), join(venv, 'bin', program), [])
}
