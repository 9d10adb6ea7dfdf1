const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** One modern request and its JSON answer. */
export const call = async (
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  more: Readonly<Record<string, string>> = {},
): Promise<unknown> => {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      ...more,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
  })
  return response.json()
}

const LEGACY = '2025-11-25'

/** Opens a legacy session and returns what its later requests carry. */
export const openSession = async (
  url: string,
  capabilities: object = {},
  more: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> => {
  const headers = { ...more, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const post = (more: object, message: object): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
  const params = { protocolVersion: LEGACY, capabilities, clientInfo: { name: 'test', version: '1' } }
  const answer = await post({}, { id: 1, method: 'initialize', params })
  await answer.text()
  const session = { 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': LEGACY }
  await post(session, { method: 'notifications/initialized' })
  return { ...headers, ...session }
}

/** Calls a demo tool that asks its caller something, and returns the stream once the question has come. */
export const callThatWaits = async (url: string): Promise<ReadableStreamDefaultReader<string>> => {
  const headers = await openSession(url, { elicitation: {} })
  const params = { name: 'test_elicitation', arguments: { message: 'Who?' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params })
  const { body: stream } = await fetch(url, { method: 'POST', headers, body })
  if (!stream) throw new Error('no stream')
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  for (let text = ''; !text.includes('elicitation/create'); ) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`ended without a question: ${text}`)
    text += value
  }
  return reader
}
