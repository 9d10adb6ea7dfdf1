// Makes a clone ready to run: installs what package-lock.json names and builds src/, each only where it is needed.
// Called by npm before start, test and conformance; `--install-only` leaves the build out.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...names) => join(root, ...names)
const changedAt = path => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** When anything in a folder changed last; folders count too, for they change when a file goes. */
const newestIn = folder =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isDirectory() || !entry.name.endsWith('.test.ts'))
    .reduce((newest, entry) => Math.max(newest, changedAt(join(entry.parentPath, entry.name))), changedAt(folder))

const run = (what, command, args, options = {}) => {
  console.error(`dragoman: ${what}`)
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options })
  if (error) console.error(`dragoman: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}

const install = () => {
  // npm writes this file last, so an interrupted install is done again.
  if (changedAt(at('node_modules', '.package-lock.json')) >= changedAt(at('package-lock.json'))) return
  // Also where NODE_ENV is production: the build needs the compiler.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  if (npm?.endsWith('.js')) run('installing (npm ci)', process.execPath, [npm, ...args])
  else run('installing (npm ci)', 'npm', args, { shell: process.platform === 'win32' })
}

const build = () => {
  const stamp = at('dist', '.built')
  const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'].map(name =>
    changedAt(at(name)),
  )
  const newest = Math.max(newestIn(at('src')), ...settings)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === String(newest)) return
  rmSync(stamp, { force: true })
  run('building (tsc)', process.execPath, [at('node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json'])
  // The time the sources had when it began: what changed meanwhile is built next time.
  writeFileSync(stamp, String(newest))
}

install()
if (!process.argv.includes('--install-only')) build()
