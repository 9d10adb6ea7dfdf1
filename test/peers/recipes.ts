import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheRoot, type Recipe } from './install.ts'
import type { Command } from './process.ts'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** How peers of one language are installed, and how an installed one is started. */
export interface Program {
  readonly recipe: Recipe
  start(folder: string, args: readonly string[]): Command
}

/** The Java client with one version of the SDK. */
export const javaProgram = (version: string): Program => ({
  recipe: {
    name: `java-sdk-${version}`,
    toolchain: { command: 'mvn', args: ['--version'] },
    sources: [at('java')],
    download: folder => ({
      command: 'mvn',
      args: [
        ...['--quiet', '--batch-mode', '--file', at('java/pom.xml'), 'dependency:copy-dependencies'],
        ...[`-Dmcp.version=${version}`, `-DoutputDirectory=${join(folder, 'lib')}`],
      ],
    }),
    compile: folder => ({
      command: 'javac',
      args: [
        ...['-encoding', 'UTF-8', '-nowarn', '-d', join(folder, 'classes')],
        ...['-cp', join(folder, 'lib', '*'), at('java/JavaClient.java')],
      ],
    }),
  },
  start: (folder, args) => ({
    command: 'java',
    args: [
      ...['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto'], // starts sooner
      ...['-cp', [join(folder, 'classes'), join(folder, 'lib', '*')].join(delimiter), 'JavaClient', ...args],
    ],
  }),
})

/** A Python script with the packages that a requirements file pins. */
export const pythonProgram = (requirements: string, script: string): Program => ({
  recipe: {
    name: `python-${requirements}`,
    toolchain: { command: 'python3', args: ['-c', 'import pip, sys; sys.exit(sys.version_info < (3, 11))'] },
    sources: [at(`python/requirements-${requirements}.txt`)],
    download: folder => ({
      command: 'python3',
      args: [
        ...['-m', 'pip', 'install', '--quiet', '--no-input', '--no-deps', '--no-compile', '--only-binary', ':all:'],
        ...['--target', folder, '--requirement', at(`python/requirements-${requirements}.txt`)],
      ],
    }),
  },
  start: (folder, args) => ({
    command: 'python3',
    args: [at(`python/${script}.py`), ...args],
    env: { PYTHONPATH: folder, PYTHONUNBUFFERED: '1' },
  }),
})

/** A Node.js program that a lock file pins; the program is one of its packages, or is told the folder. */
export const nodeProgram = (script: (folder: string) => string): Program => ({
  recipe: {
    name: 'node',
    toolchain: { command: 'npm', args: ['--version'] },
    sources: [at('node')],
    download: folder => ({
      command: 'sh',
      args: [
        '-c',
        `cp "${at('node')}"/package*.json "${folder}" && npm ci --silent --ignore-scripts --prefix "${folder}"`,
      ],
    }),
  },
  start: (folder, args) => ({ command: process.execPath, args: [script(folder), ...args] }),
})

/** oidc-provider, as an identity provider that issues JWTs for servers. */
export const identityProvider = (): Program => {
  const program = nodeProgram(() => at('oauth/identity-provider.mjs'))
  return { ...program, start: (folder, args) => program.start(folder, [folder, ...args]) }
}

const EXECUTABLE = process.platform === 'win32' ? '.exe' : ''

/** A Go program, with the modules that its `go.mod` names. */
const goModule = (name: string, source: string): Program => {
  const output = (folder: string): string => join(folder, name + EXECUTABLE)
  return {
    recipe: {
      name,
      toolchain: { command: 'go', args: ['version'] },
      sources: [at(source)],
      download: () => ({ command: 'go', args: ['mod', 'download'], cwd: at(source) }),
      compile: folder => ({
        command: 'go',
        args: ['build', '-trimpath', '-ldflags=-s -w', '-o', output(folder), '.'],
        cwd: at(source),
      }),
    },
    start: (folder, args) => ({ command: output(folder), args }),
  }
}

/** The Go client; its `go.mod` names the version of the SDK. */
export const goProgram = (): Program => goModule('go-sdk', 'go')

/** The OpenTelemetry collector. */
export const collectorProgram = (): Program => goModule('collector', 'collector')

/** The Rust client; its `Cargo.lock` names the version of rmcp. */
export const rustProgram = (): Program => ({
  recipe: {
    name: 'rmcp',
    toolchain: { command: 'cargo', args: ['--version'] },
    sources: [at('rust')],
    download: () => ({ command: 'cargo', args: ['fetch', '--locked'], cwd: at('rust') }),
    compile: folder => ({
      command: 'cargo',
      args: ['install', '--locked', '--debug', '--path', at('rust'), '--root', folder],
      env: { CARGO_TARGET_DIR: join(cacheRoot(), 'cargo-target') },
    }),
  },
  start: (folder, args) => ({ command: join(folder, 'bin', 'rust-client'), args }),
})
