// `npm --prefix bench run install-peers`: installs other gateways into the folder BENCH_PEERS, else `bench/.peers`, in fixed
// versions. nginx and agentgateway are not among them: they are found on PATH. Plain Node, no dependency.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = process.env.BENCH_PEERS ?? join(dirname(fileURLToPath(import.meta.url)), '.peers')
const NPM = ['mcp-proxy@6.7.19', 'supergateway@4.0.0']
const PYTHON = { fastmcp: '4.1.0', 'mcp-proxy': '0.13.0' } // each in an environment of its own: their dependencies conflict
const GO = { module: 'github.com/TBXark/mcp-proxy', version: 'v0.43.2' }

const run = (command, args, options = {}) => {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options })
  if (error || status !== 0) throw new Error(`${command} ${args[0]} failed${error ? `: ${error.message}` : ''}`)
}

const installNpm = () => {
  const prefix = join(folder, 'npm')
  mkdirSync(prefix, { recursive: true })
  writeFileSync(join(prefix, 'package.json'), '{"private":true}\n')
  run('npm', ['install', '--prefix', prefix, '--no-audit', '--no-fund', ...NPM])
}

const installPython = (name, version) => {
  const environment = join(folder, 'python', name)
  run('python3', ['-m', 'venv', environment])
  run(join(environment, 'bin/pip'), ['install', '--quiet', `${name}==${version}`])
}

// `go install` asks for the newest version, too, which not every module proxy answers.
const installGo = () => {
  const source = join(folder, 'go')
  mkdirSync(source, { recursive: true })
  writeFileSync(join(source, 'go.mod'), `module peers\n\ngo 1.24\n\nrequire ${GO.module} ${GO.version}\n`)
  run('go', ['build', '-mod=mod', '-o', join(source, 'mcp-proxy'), GO.module], { cwd: source })
}

const INSTALLERS = [
  { names: NPM, install: installNpm },
  ...Object.entries(PYTHON).map(([name, version]) => ({
    names: [`${name} (Python)@${version}`],
    install: () => installPython(name, version),
  })),
  { names: [`mcp-proxy (Go)@${GO.version}`], install: installGo },
]

const versions = {} // of what is installed, for the report
for (const { names, install } of INSTALLERS)
  try {
    install()
    for (const name of names) versions[name.slice(0, name.lastIndexOf('@'))] = name.slice(name.lastIndexOf('@') + 1)
    console.log(`installed ${names.join(', ')}`)
  } catch (error) {
    console.error(`not installed: ${names.join(', ')}: ${error.message}`)
    process.exitCode = 1
  }
writeFileSync(join(folder, 'versions.json'), `${JSON.stringify(versions, null, 2)}\n`)
