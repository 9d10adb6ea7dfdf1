// Installs and builds what a bench needs, then runs it: `node start.mjs run --quick`; `all` without flags runs every
// step, each in a process of its own. Plain Node, no dependency.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(here)

const run = (command, args, cwd) => {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

const isInstalled = () => {
  const installed = join(here, 'node_modules/.package-lock.json')
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(join(here, 'package-lock.json')).mtimeMs
}

const [program, ...args] = process.argv.slice(2)
run(process.execPath, [join(root, 'scripts/ready.mjs')], root)
if (!isInstalled()) run('npm', ['ci', '--include=dev'], here)
run(process.execPath, [join(here, 'node_modules/typescript/bin/tsc'), '-p', here], here)
// Flags are about the timing of calls, so with any of them nothing else is measured.
const steps =
  program !== 'all'
    ? [program]
    : args.length > 0
      ? ['run']
      : [
          'run',
          'idle',
          'parked',
          'workspace',
          'growth',
          'durability',
          'sessions',
          'workers',
          'observability',
          'recorder',
          'commands',
        ]
// 20,000 idle sessions need more open files than most systems allow; a limit that cannot be raised stays.
const RAISED = 'ulimit -n 65536 2>/dev/null; exec "$@"'
for (const step of steps)
  run('sh', ['-c', RAISED, 'sh', process.execPath, join(here, 'dist', `${step}.js`), ...args], here)
// What a step wrote into the page is formatted as the check wants it.
run(
  process.execPath,
  [join(root, 'node_modules/@biomejs/biome/bin/biome'), 'format', '--write', 'docs/benchmarks.md'],
  root,
)
