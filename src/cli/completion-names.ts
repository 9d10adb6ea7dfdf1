import { PassThrough, Writable } from 'node:stream'
import { MCP_CLIENTS } from '../config/clients/client-files.ts'
import { announcedDaemon } from '../config/daemon-file.ts'
import { dataDirectory } from '../config/data-dir.ts'
import { fetchWorkspaces } from './client/daemon-workspaces.ts'
import type { CommandContext } from './command.ts'

type NameKind = 'client' | 'server' | 'tool' | 'prompt'

/** What the first word after a command names. */
const NAMED_BY: Readonly<Record<string, NameKind>> = {
  ...Object.fromEntries(['link', 'unlink', 'import'].map(command => [command, 'client'])),
  ...Object.fromEntries(
    ['tools', 'prompts', 'resources', 'ping', 'logs', 'doctor', 'login', 'logout', 'remove'].map(command => [
      command,
      'server',
    ]),
  ),
  call: 'tool',
  describe: 'tool',
  prompt: 'prompt',
  complete: 'prompt',
}

/** The commands whose further words are arguments, `key=`. */
const TAKES_ARGUMENTS: ReadonlySet<string> = new Set(['call', 'prompt', 'complete'])

/** What may follow these words of a command line. Only the running daemon is asked: nothing is started to complete a word. */
export const completionNames = async (
  [command = '', name]: readonly string[],
  context: CommandContext,
): Promise<readonly string[]> => {
  const kind = Object.hasOwn(NAMED_BY, command) ? NAMED_BY[command] : undefined
  if (kind === 'client') return Object.keys(MCP_CLIENTS)
  const daemon = kind && (await announcedDaemon(dataDirectory({ env: process.env })))
  if (!kind || !daemon) return []
  if (name !== undefined) return TAKES_ARGUMENTS.has(command) ? argumentNames(kind, name, context) : []
  if (kind === 'server') return [...new Set((await fetchWorkspaces(daemon))?.flatMap(({ servers }) => servers))]
  return (await listed(kind, context)).map(({ label }) => label)
}

interface ListedName {
  readonly label: string // `server/name`
  readonly arguments: readonly string[]
}

const argumentNames = async (kind: NameKind, name: string, context: CommandContext): Promise<readonly string[]> => {
  const found = (await listed(kind, context)).find(({ label }) => label === name)
  return found?.arguments.map(argument => `${argument}=`) ?? []
}

interface ListedItem {
  readonly name: string
  readonly inputSchema?: { readonly properties?: object }
  readonly arguments?: readonly { readonly name: string }[]
  readonly _meta?: { readonly 'dragoman/origin'?: { readonly server: string; readonly name: string } }
}

/** The tools or prompts of the daemon, as `dragoman tools --json` prints them. */
const listed = async (kind: NameKind, context: CommandContext): Promise<readonly ListedName[]> => {
  const { run } = await (kind === 'prompt' ? import('./prompts.ts') : import('./tools.ts'))
  let text = ''
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      text += chunk
      done()
    },
  })
  const terminal = { input: new PassThrough(), output, error: new PassThrough(), env: {}, onInterrupt: () => () => {} }
  await run(['--json', '--timeout', '3', ...(kind === 'prompt' ? [] : ['--all'])], { ...context, terminal })
  const items: readonly ListedItem[] = Object.values(JSON.parse(text || '{}') as Record<string, ListedItem[]>).flat()
  return items.map(({ name, inputSchema, arguments: args, _meta }) => {
    const origin = _meta?.['dragoman/origin']
    return {
      label: origin ? `${origin.server}/${origin.name}` : name,
      arguments: args?.map(argument => argument.name) ?? Object.keys(inputSchema?.properties ?? {}),
    }
  })
}
