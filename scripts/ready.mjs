// Prepares a clone: installs what package-lock.json names and bundles src/ into dist/ (the console into dist/console/), each only where it is needed.
//   (no flag)       before start, test and conformance
//   --install-only  before check
//   --prepare       after npm install: builds, unless the compiler is not installed (npm install --omit=dev)
//   --rebuild       npm run build, npm pack: builds again in any case
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = (...names) => join(root, ...names)
const changedAt = path => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

const filesIn = folder => readdirSync(folder, { withFileTypes: true, recursive: true })
const pathOf = entry => join(entry.parentPath, entry.name)

/** When anything in a folder changed last. A folder changes when a file in it is removed. */
const newestIn = folder =>
  filesIn(folder)
    .filter(entry => entry.isDirectory() || !/\.test\.tsx?$/.test(entry.name))
    .reduce((newest, entry) => Math.max(newest, changedAt(pathOf(entry))), changedAt(folder))

const run = (what, command, args, options = {}) => {
  console.error(`dragoman: ${what}`)
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options })
  if (error) console.error(`dragoman: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}

const install = () => {
  // npm writes this file last, so an interrupted install is repeated.
  if (changedAt(at('node_modules', '.package-lock.json')) >= changedAt(at('package-lock.json'))) return
  // Development dependencies also where NODE_ENV is production: the build needs the compiler.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  if (npm?.endsWith('.js')) run('installing (npm ci)', process.execPath, [npm, ...args])
  else run('installing (npm ci)', 'npm', args, { shell: process.platform === 'win32' })
}

const compiler = at('node_modules', 'typescript', 'bin', 'tsc')

const SETTINGS = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'scripts/ready.mjs',
  'scripts/bundle-console.mjs',
  'scripts/bundled-licenses.mjs',
  'scripts/bundle-program.mjs',
]

const build = async isForced => {
  const stamp = at('dist', '.built')
  const newest = Math.max(newestIn(at('src')), ...SETTINGS.map(name => changedAt(at(name))))
  if (!isForced && existsSync(stamp) && readFileSync(stamp, 'utf8') === String(newest)) return
  rmSync(at('dist'), { recursive: true, force: true }) // of a file that is no longer in src/ nothing may remain
  run('building the types (tsc)', process.execPath, [compiler, '-p', 'tsconfig.build.json'])
  keepPublicTypes()
  console.error('dragoman: bundling the program and the console (esbuild)')
  const { bundleProgram } = await import('./bundle-program.mjs') // their bundler is not installed with --omit=dev
  const { bundleConsole } = await import('./bundle-console.mjs')
  await Promise.all([bundleProgram(), bundleConsole()])
  // The time the sources had when the build began: a later change is built next time.
  writeFileSync(stamp, String(newest))
}

const IMPORTED = /(?<=(?:from|import\()\s*['"])(\.[^'"]+)\.ts(?=['"])/g

/** Keeps the declarations that dist/index.d.ts leads to, and lets them name .js files as the modules do. */
const keepPublicTypes = () => {
  const kept = new Map()
  const follow = path => {
    if (kept.has(path)) return
    const text = readFileSync(path, 'utf8')
    kept.set(path, text.replace(IMPORTED, '$1.js'))
    for (const [, name] of text.matchAll(IMPORTED)) follow(resolve(dirname(path), `${name}.d.ts`))
  }
  follow(at('dist', 'index.d.ts'))
  for (const entry of filesIn(at('dist')).filter(({ name }) => name.endsWith('.d.ts'))) {
    const text = kept.get(pathOf(entry))
    if (text === undefined) rmSync(pathOf(entry))
    else writeFileSync(pathOf(entry), text)
  }
}

const [mode] = process.argv.slice(2)
if (mode === '--rebuild') await build(true)
else if (mode === '--prepare') existsSync(compiler) && (await build(false))
else {
  install()
  if (mode !== '--install-only') await build(false)
}
