import { mcpUrl, type Snippet, type SnippetContext } from './snippets.ts'

/** Programs that connect with an SDK and print the names of the tools. Every one of them is run or compiled by a test. */
const quoted = (text: string): string => JSON.stringify(text)

const scriptOptions = ({ token }: SnippetContext): string =>
  token === undefined ? '' : `, {\n  requestInit: { headers: { Authorization: ${quoted(`Bearer ${token}`)} } },\n}`

const script = (imports: readonly string[], options: string, context: SnippetContext): string => `${imports.join('\n')}

const client = new Client({ name: 'example', version: '1.0.0' }${options})
const transport = new StreamableHTTPClientTransport(new URL(${quoted(mcpUrl(context))})${scriptOptions(context)})
await client.connect(transport)
const { tools } = await client.listTools()
console.log(tools.map(tool => tool.name))
await client.close()
`

export const typescriptV1Snippets = (context: SnippetContext): readonly Snippet[] => [
  { title: 'Install', text: 'npm install @modelcontextprotocol/sdk' },
  {
    title: 'Program',
    text: script(
      [
        "import { Client } from '@modelcontextprotocol/sdk/client/index.js'",
        "import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'",
      ],
      '',
      context,
    ),
  },
]

export const typescriptV2Snippets = (context: SnippetContext): readonly Snippet[] => [
  { title: 'Install', text: 'npm install @modelcontextprotocol/client' },
  {
    title: 'Program',
    text: script(
      ["import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'"],
      ", { versionNegotiation: { mode: 'auto' } }",
      context,
    ),
    note: 'It speaks the newest revision that both sides know.',
  },
]

export const pythonSnippets = (context: SnippetContext): readonly Snippet[] => {
  const { token } = context
  const headers = token === undefined ? '' : `, headers={"Authorization": ${quoted(`Bearer ${token}`)}}`
  return [
    { title: 'Install', text: 'pip install mcp' },
    {
      title: 'Program',
      text: `import asyncio

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main():
    async with streamablehttp_client(${quoted(mcpUrl(context))}${headers}) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print([tool.name for tool in (await session.list_tools()).tools])


asyncio.run(main())
`,
    },
  ]
}
