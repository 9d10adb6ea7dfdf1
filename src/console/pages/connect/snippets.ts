import { META } from '../../../protocol/meta.ts'
import { MODERN } from '../../../protocol/revisions.ts'

// What is pasted into clients that have no file here: addresses, commands and code, for one workspace.

/** The gateway, the workspace and the token that a snippet is for. */
export interface SnippetContext {
  readonly base: string // the address of the gateway as the reader reaches it, without a slash at the end
  readonly workspace: string
  readonly token: string | undefined // undefined: none is needed
  readonly stdio: readonly string[] // the command line of `dragoman stdio`
  readonly tool?: string | undefined // one of the workspace, for an example
}

/** One text to copy. */
export interface Snippet {
  readonly title: string
  readonly text: string
  readonly note?: string | undefined
}

export const mcpUrl = ({ base, workspace }: SnippetContext): string =>
  workspace === 'default' ? `${base}/mcp` : `${base}/mcp/${encodeURIComponent(workspace)}`

const sseUrl = (context: SnippetContext): string =>
  context.workspace === 'default' ? `${context.base}/sse` : `${mcpUrl(context)}/sse`

const actionsUrl = ({ base, workspace }: SnippetContext): string => `${base}/actions/${encodeURIComponent(workspace)}`

/** A word of a shell, in quotes where it needs them. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

const json = (value: unknown): string => JSON.stringify(value, undefined, 2)
const bearer = ({ token }: SnippetContext): string | undefined => (token === undefined ? undefined : `Bearer ${token}`)

/** An address, and the header that goes with it. */
const addressSnippets = (url: string, context: SnippetContext): readonly Snippet[] => {
  const value = bearer(context)
  return [
    { title: 'URL', text: url },
    ...(value === undefined ? [] : [{ title: 'Header', text: `Authorization: ${value}` }]),
  ]
}

export const httpSnippets = (context: SnippetContext): readonly Snippet[] => addressSnippets(mcpUrl(context), context)
export const sseSnippets = (context: SnippetContext): readonly Snippet[] => addressSnippets(sseUrl(context), context)

export const stdioSnippets = ({ stdio }: SnippetContext): readonly Snippet[] => [
  { title: 'Command', text: stdio.map(shellWord).join(' ') },
  {
    title: 'JSON',
    text: json({ mcpServers: { dragoman: { command: stdio[0], args: stdio.slice(1) } } }),
    note: 'The key of the servers differs between clients.',
  },
]

export const curlSnippets = (context: SnippetContext): readonly Snippet[] => {
  const value = bearer(context)
  const header = value === undefined ? [] : [`-H ${shellWord(`Authorization: ${value}`)}`]
  const line = (...parts: readonly string[]): string => ['curl -s', ...parts].join(' \\\n  ')
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/list',
    params: {
      _meta: {
        [META.protocolVersion]: MODERN,
        [META.clientInfo]: { name: 'curl', version: '1' },
        [META.clientCapabilities]: {},
      },
    },
  }
  const tool = context.tool ?? 'TOOL'
  return [
    { title: 'List the tools', text: line(shellWord(`${actionsUrl(context)}/openapi.json`), ...header) },
    {
      title: 'Call a tool',
      text: line(
        shellWord(`${actionsUrl(context)}/${encodeURIComponent(tool)}`),
        ...header,
        "-H 'Content-Type: application/json'",
        "-d '{}'",
      ),
      note: context.tool === undefined ? 'Replace TOOL with the name of a tool.' : 'The arguments are the body.',
    },
    {
      title: 'Speak MCP',
      text: line(
        shellWord(mcpUrl(context)),
        ...header,
        "-H 'Content-Type: application/json'",
        "-H 'Accept: application/json, text/event-stream'",
        `-H 'MCP-Protocol-Version: ${MODERN}'`,
        "-H 'Mcp-Method: tools/list'",
        `-d ${shellWord(JSON.stringify(message))}`,
      ),
    },
  ]
}
