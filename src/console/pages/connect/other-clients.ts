import type { IconName } from '../../parts/icon.tsx'
import { pythonSnippets, typescriptV1Snippets, typescriptV2Snippets } from './sdk-snippets.ts'
import {
  curlSnippets,
  httpSnippets,
  mcpUrl,
  type Snippet,
  type SnippetContext,
  sseSnippets,
  stdioSnippets,
} from './snippets.ts'

/** A client without a file on the machine of the gateway. */
export interface OtherClient {
  readonly id: string
  readonly title: string
  readonly icon: IconName
  readonly how: string // in the list: how it connects
  readonly about: string
  readonly usesToken: boolean // in its snippets
  readonly snippets: (context: SnippetContext) => readonly Snippet[]
  /** It runs in the cloud: it needs a public address, and logs in with OAuth. */
  readonly steps?: readonly string[] | undefined
}

const inCloud = (steps: readonly string[]): Pick<OtherClient, 'icon' | 'how' | 'usesToken' | 'snippets' | 'steps'> => ({
  icon: 'external',
  how: 'HTTP, OAuth',
  usesToken: false,
  snippets: context => [{ title: 'URL', text: mcpUrl(context) }],
  steps,
})

export const OTHER_CLIENTS: readonly OtherClient[] = [
  {
    id: 'http',
    title: 'Any client with a URL',
    icon: 'link',
    how: 'Streamable HTTP',
    about: 'For every client that supports MCP over HTTP, of any revision.',
    usesToken: true,
    snippets: httpSnippets,
  },
  {
    id: 'sse',
    title: 'Any client of HTTP+SSE',
    icon: 'link',
    how: 'HTTP+SSE',
    about: 'For clients of the revision 2024-11-05, which open an event stream first.',
    usesToken: true,
    snippets: sseSnippets,
  },
  {
    id: 'stdio',
    title: 'Any client that starts a command',
    icon: 'play',
    how: 'stdio',
    about: 'For clients on the machine of the gateway that support stdio only. They need no token.',
    usesToken: false,
    snippets: stdioSnippets,
  },
  {
    id: 'claude-ai',
    title: 'Claude.ai',
    about: 'Anthropic’s servers connect to the gateway, and you log in at it with your browser.',
    ...inCloud([
      'Open Settings → Connectors → Add custom connector.',
      'Enter a name and the URL, and add the connector.',
      'Choose Connect, and sign in at the gateway.',
    ]),
  },
  {
    id: 'chatgpt',
    title: 'ChatGPT',
    about: 'OpenAI’s servers connect to the gateway, and you log in at it with your browser.',
    ...inCloud([
      'Turn on developer mode in the advanced settings of Apps.',
      'Create an app: enter the URL, and choose OAuth as its authentication.',
      'Connect the app, and sign in at the gateway.',
    ]),
  },
  {
    id: 'curl',
    title: 'curl and scripts',
    icon: 'play',
    how: 'REST, HTTP',
    about: 'Every tool has a URL of its own; one POST calls it.',
    usesToken: true,
    snippets: curlSnippets,
  },
  {
    id: 'typescript-v2',
    title: 'TypeScript SDK v2',
    icon: 'edit',
    how: 'Streamable HTTP',
    about: 'The client package of the official SDK.',
    usesToken: true,
    snippets: typescriptV2Snippets,
  },
  {
    id: 'typescript-v1',
    title: 'TypeScript SDK v1',
    icon: 'edit',
    how: 'Streamable HTTP',
    about: 'The official SDK before its packages were split.',
    usesToken: true,
    snippets: typescriptV1Snippets,
  },
  {
    id: 'python',
    title: 'Python SDK',
    icon: 'edit',
    how: 'Streamable HTTP',
    about: 'The official SDK for Python.',
    usesToken: true,
    snippets: pythonSnippets,
  },
]
