// A client of 2026-07-28 for benches that time whole requests.

const CLIENT = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** The text of the answer to a request; throws if it is an error. */
export const ask = async (
  url: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
): Promise<string> => {
  const name: Record<string, string> = typeof params.name === 'string' ? { 'mcp-name': params.name } : {}
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...name,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: CLIENT } }),
  })
  if (!response.ok) throw new Error(`${method}: ${response.status} ${await response.text()}`)
  return response.text()
}

const CURSOR = /"nextCursor":"([^"]+)"/

/** The texts of all pages of a list. */
export const listPages = async (url: string, method: string): Promise<string[]> => {
  const pages: string[] = []
  let cursor: string | undefined
  do {
    const page = await ask(url, method, cursor === undefined ? {} : { cursor })
    pages.push(page)
    cursor = CURSOR.exec(page.slice(0, 2000))?.[1] ?? CURSOR.exec(page.slice(-2000))?.[1]
  } while (cursor !== undefined)
  return pages
}

/** The tools of all pages. */
export const listTools = async (url: string): Promise<ListedTool[]> =>
  (await listPages(url, 'tools/list')).flatMap(
    page => (JSON.parse(page) as { result: { tools: ListedTool[] } }).result.tools,
  )

export interface ListedTool {
  readonly name: string
  readonly [member: string]: unknown
}

/** The text of a search for tools. */
export const searchTools = (url: string, query: string, limit: number): Promise<string> =>
  ask(url, 'tools/call', { name: 'search_tools', arguments: { query, limit } })
