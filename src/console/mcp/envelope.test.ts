import { describe, expect, test } from 'vitest'
import { REVISIONS, type Revision } from '../../protocol/revisions.ts'
import { ExactNumber } from '../exact-json.ts'
import { capabilitiesOf, DEFAULT_SETTINGS } from './client-settings.ts'
import { requestHeaders, requestMessage } from './envelope.ts'
import { encodeHeaderValue, mirroredParams } from './mirrored-params.ts'

const call = (revision: Revision, params = { name: 'tool ü', arguments: {} }) => ({
  revision,
  version: '1',
  capabilities: capabilitiesOf(DEFAULT_SETTINGS),
  method: 'tools/call',
  params,
  id: 7,
})

describe('the message of each revision', () => {
  test('2026-07-28 says in _meta who the client is', () => {
    expect(requestMessage(call('2026-07-28'))).toEqual({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: {
        name: 'tool ü',
        arguments: {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'dragoman-console', title: 'Dragoman console', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {
            elicitation: { form: {}, url: {} },
            sampling: {},
            roots: { listChanged: true },
          },
          'io.modelcontextprotocol/logLevel': 'debug',
          progressToken: 7,
        },
      },
    })
  })

  test.each(REVISIONS.slice(0, -1))('%s asks for progress and nothing else', revision => {
    expect(requestMessage(call(revision))).toEqual({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'tool ü', arguments: {}, _meta: { progressToken: 7 } },
    })
    expect(requestMessage({ ...call(revision), method: 'tools/list' })).not.toHaveProperty('params._meta')
  })
})

describe('the headers of each revision', () => {
  test('2026-07-28 repeats version, method and name', () => {
    expect(requestHeaders(call('2026-07-28'))).toMatchObject({
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': '=?base64?dG9vbCDDvA==?=',
    })
    expect(requestHeaders({ ...call('2026-07-28'), method: 'tools/list', params: {} })).not.toHaveProperty('mcp-name')
  })

  test.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', undefined],
    ['2024-11-05', undefined],
  ] as const)('%s sends the version header %s', (revision, version) => {
    const headers = requestHeaders(call(revision))
    expect(headers['mcp-protocol-version']).toBe(version)
    expect(headers['mcp-method']).toBeUndefined()
    expect(requestHeaders({ ...call(revision), method: 'initialize' })['mcp-protocol-version']).toBeUndefined()
  })
})

describe('mirrored arguments', () => {
  const schema = {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      count: { type: 'integer', 'x-mcp-header': 'Count' },
      bad: { type: 'string', 'x-mcp-header': 'a b' },
      inner: { type: 'object', properties: { on: { type: 'boolean', 'x-mcp-header': 'On' } } },
    },
  }

  test('are found through properties', () => {
    const args = { region: 'eu', count: new ExactNumber('9007199254740993'), bad: 'x', inner: { on: true } }
    expect(mirroredParams(schema, args)).toEqual({
      'mcp-param-region': 'eu',
      'mcp-param-count': '9007199254740993',
      'mcp-param-on': 'true',
    })
  })

  test('null, missing ones and schemas that are none have no header', () => {
    expect(mirroredParams(schema, { region: null })).toEqual({})
    expect(mirroredParams(undefined, { region: 'x' })).toEqual({})
    expect(mirroredParams(schema, undefined)).toEqual({})
  })

  test.each([
    ['plain text', 'plain text'],
    ['', ''],
    [' led', '=?base64?IGxlZA==?='],
    ['a\nb', '=?base64?YQpi?='],
    ['=?base64?x?=', '=?base64?PT9iYXNlNjQ/eD89?='],
  ])('%j is written %j', (text, header) => {
    expect(encodeHeaderValue(text)).toBe(header)
  })
})
