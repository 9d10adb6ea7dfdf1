import { loadConfig } from '../config/load.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import { type DoctorTarget, examine } from '../doctor/doctor.ts'
import type { DoctorReport } from '../doctor/report.ts'
import { readHeaders } from './client/target.ts'
import type { Run } from './command.ts'
import { doctorText } from './doctor-text.ts'
import { splitAtDashes } from './one-server.ts'
import {
  configFileOf,
  type Flags,
  type FlagValues,
  flagHelp,
  JSON_FLAG,
  print,
  printJson,
  readLine,
  textOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  config: { value: 'FILE', help: 'the configuration with the named server (default: the one that is found)' },
  header: { value: 'TEXT', many: true, help: 'send this HTTP header, as in "Name: value" (repeatable)' },
  token: { value: 'TOKEN', help: 'send this bearer token' },
  timeout: { value: 'SECONDS', help: 'for each request (default: 15)' },
  strict: { help: 'exit with 1 also if a SHOULD is not followed' },
  ...JSON_FLAG,
}

const HELP = `Usage: dragoman doctor <URL | SERVER | -- COMMAND ...> [flags]

Examines an MCP server: tries every transport and revision, reads its lists, measures its latency, and names every
deviation from the specification with its rule. Calls no tool.

Examples:
  dragoman doctor http://127.0.0.1:8765/mcp
  dragoman doctor -- npx -y @modelcontextprotocol/server-everything
  dragoman doctor github --config dragoman.json --json

Exit codes: 0 the server works; 1 it breaks a MUST; 2 invalid arguments; 4 no MCP server can be reached there;
5 it wants credentials.

${flagHelp(FLAGS)}
`

const UNREACHABLE = 4
const LOGIN_REQUIRED = 5

/** Examines one server and prints what was found. */
export const run: Run = async (args, { version }) => {
  const { own, command } = splitAtDashes(args)
  const { flags, words } = readLine(own, FLAGS, 1)
  if (flags.help) return print(HELP)
  const target = await targetOf(words[0], command, flags)
  const progress = showStep()
  const report = await examine(target, { timeoutMs: timeoutOf(flags), version, onStep: progress.step })
  progress.end()
  const code = exitCodeOf(report, flags.strict === true)
  return flags.json ? printJson(report, code) : print(doctorText(report), code)
}

const exitCodeOf = ({ verdict, deviations }: DoctorReport, isStrict: boolean): number => {
  if (verdict === 'unreachable' || verdict === 'not-mcp') return UNREACHABLE
  if (verdict === 'login-required') return LOGIN_REQUIRED
  return deviations.some(({ level }) => isStrict || level === 'must') ? 1 : 0
}

const targetOf = async (
  word: string | undefined,
  command: readonly string[] | undefined,
  flags: FlagValues,
): Promise<DoctorTarget> => {
  if (command) {
    const [file, ...args] = command
    if (word !== undefined) throw new UsageError('give either a URL, a server or a command after --')
    if (file === undefined) throw new UsageError('expected a command after --')
    return { ...PROCESS, name: file, command: file, args }
  }
  if (word === undefined) throw new UsageError('expected a URL, the name of a server, or -- and a command')
  if (/^https?:\/\//.test(word)) {
    if (!URL.canParse(word)) throw new UsageError(`${JSON.stringify(word)} is not a URL`)
    return { kind: 'remote', url: new URL(word), headers: readHeaders(flags) }
  }
  const { servers } = await loadConfig({ file: await configFileOf(flags), env: process.env })
  return configuredTarget(word, servers, flags)
}

const PROCESS = { kind: 'process', env: {}, cwd: undefined, era: 'auto', timeoutMs: 0 } as const

const configuredTarget = (
  name: string,
  servers: ReadonlyMap<string, ServerConfig>,
  flags: FlagValues,
): DoctorTarget => {
  const server = servers.get(name)
  if (!server)
    throw new UsageError(
      `the configuration has no server ${JSON.stringify(name)}; it has ${[...servers.keys()].join(', ')}`,
    )
  if (server.kind === 'remote')
    return { kind: 'remote', url: new URL(server.url), headers: { ...server.headers, ...readHeaders(flags) } }
  if (server.kind === 'process') return server
  if (server.kind === 'unavailable') throw new UsageError(`${name} cannot be examined: ${server.reason}`)
  throw new UsageError(`${name} is built in; run a gateway and examine its URL`)
}

const timeoutOf = (flags: FlagValues): number => {
  const seconds = Number(textOf(flags, 'timeout') ?? 15)
  if (!(seconds > 0 && seconds <= 3600)) throw new UsageError('--timeout: expected a number of seconds')
  return seconds * 1000
}

/** On a terminal, one line that is overwritten. */
const showStep = () => {
  const write = (text: string): void => void (process.stderr.isTTY && process.stderr.write(`\r\u001b[K${text}`))
  return { step: (step: string): void => write(`trying ${step} …`), end: (): void => write('') }
}
