import { isModern, NEWEST_LEGACY, OLDEST } from '../../../../protocol/revisions.ts'
import { ExactNumber, stringifyExact } from '../../../exact-json.ts'
import { type CopiedRequest, TOKEN_VARIABLE } from './copied-request.ts'

const METHODS: Readonly<Record<string, string>> = {
  'tools/call': 'callTool',
  'prompts/get': 'getPrompt',
  'resources/read': 'readResource',
}

/** A literal of TypeScript in single quotes. */
const literal = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`

const transportOptions = ({ needsToken }: CopiedRequest): string =>
  needsToken
    ? `, {\n  requestInit: { headers: { Authorization: \`Bearer \${process.env.${TOKEN_VARIABLE}}\` } },\n}`
    : ''

const transportOf = ({ revision, url }: CopiedRequest): { readonly name: string; readonly url: string } =>
  revision === OLDEST
    ? { name: 'SSEClientTransport', url: `${url}/sse` }
    : { name: 'StreamableHTTPClientTransport', url }

const useOf = (request: CopiedRequest): string[] => {
  const exact = exactNumbers(request.params)
  const call = `client.${METHODS[request.method] ?? 'request'}(${stringifyExact(request.params, '  ')})`
  return [
    ...(exact.length > 0 ? [`// JavaScript rounds numbers such as ${exact[0]}: the server gets other digits.`] : []),
    `const result = await ${call}`,
    'console.log(result)',
    'await client.close()',
  ]
}

const exactNumbers = (value: unknown): readonly string[] => {
  if (value instanceof ExactNumber) return [value.text]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(exactNumbers) : []
}

/** TypeScript for `@modelcontextprotocol/sdk` (version 1). It speaks the legacy revisions. */
export const sdkV1Code = (request: CopiedRequest): string => {
  const transport = transportOf(request)
  const file = request.revision === OLDEST ? 'sse' : 'streamableHttp'
  return [
    ...(isModern(request.revision) ? [`// SDK version 1 speaks revisions up to ${NEWEST_LEGACY}.`] : []),
    "import { Client } from '@modelcontextprotocol/sdk/client/index.js'",
    `import { ${transport.name} } from '@modelcontextprotocol/sdk/client/${file}.js'`,
    '',
    "const client = new Client({ name: 'example', version: '1.0.0' })",
    `await client.connect(new ${transport.name}(new URL(${literal(transport.url)})${transportOptions(request)}))`,
    ...useOf(request),
    '',
  ].join('\n')
}

/** TypeScript for `@modelcontextprotocol/client` (version 2). */
export const sdkV2Code = (request: CopiedRequest): string => {
  const transport = transportOf(request)
  const mode = isModern(request.revision) ? `{ pin: ${literal(request.revision)} }` : "'legacy'"
  return [
    `import { Client, ${transport.name} } from '@modelcontextprotocol/client'`,
    '',
    'const client = new Client(',
    "  { name: 'example', version: '1.0.0' },",
    `  { versionNegotiation: { mode: ${mode} } },`,
    ')',
    `await client.connect(new ${transport.name}(new URL(${literal(transport.url)})${transportOptions(request)}))`,
    ...useOf(request),
    '',
  ].join('\n')
}
