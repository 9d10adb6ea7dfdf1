import { describe, expect, test } from 'vitest'
import { scriptedMember } from '../../../test/support/scripted-member.ts'
import { toolsIn, workspaceOf } from '../../../test/support/workspace.ts'
import { DEFAULT_TRIM } from '../../config/tool-list.ts'
import { MODERN, REVISIONS } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { previewWorkspace } from '../catalog/preview.ts'
import { cutText, trimTool } from './trim-tool.ts'

const LONG = `Creates an issue. ${'It takes every detail of it into account. '.repeat(20)}`
const TOOL = {
  name: 'create_issue',
  description: LONG,
  inputSchema: {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'create_issueArguments',
    type: 'object',
    additionalProperties: true,
    properties: {
      title: { title: 'Title', type: 'string', examples: ['a', 'b'] },
      examples: { title: 'Good ones', type: 'array', items: { type: 'string', examples: ['x'] } },
      region_id: { title: 'Region ID', type: 'string', 'x-mcp-header': 'Region', description: LONG },
      closed: { type: 'object', additionalProperties: false, default: { title: 'closed', examples: 1 } },
    },
    $defs: { Label: { title: 'Label', additionalProperties: {} } },
    required: ['title'],
  },
  outputSchema: { type: 'object', title: 'Result' },
  annotations: { title: 'Create an issue' },
  acme: { examples: [1], big: 1 },
} satisfies PlainObject

const trimmed = (tool: PlainObject, trim = DEFAULT_TRIM): unknown => trimTool(Json.of(tool), trim).toValue()

describe('a definition', () => {
  test('loses what models can do without, and nothing else', () => {
    const { outputSchema: _, ...rest } = TOOL
    const short = expect.stringMatching(/^Creates an issue\. (It takes every detail of it into account\. ?)+$/)
    expect(trimmed(TOOL)).toEqual({
      ...rest,
      description: short,
      inputSchema: {
        type: 'object',
        properties: {
          title: { type: 'string' },
          examples: { title: 'Good ones', type: 'array', items: { type: 'string' } },
          region_id: { type: 'string', 'x-mcp-header': 'Region', description: short },
          closed: { type: 'object', additionalProperties: false, default: { title: 'closed', examples: 1 } },
        },
        $defs: { Label: {} },
        required: ['title'],
      },
    })
  })

  test('keeps what the choices keep', () => {
    const kept = { descriptions: 100_000, schemas: false, outputSchema: 'keep' } as const
    const tool = Json.of(TOOL)
    expect(trimTool(tool, kept)).toBe(tool)
    expect(trimmed(TOOL, { ...kept, schemas: true })).toMatchObject({
      description: LONG,
      outputSchema: { title: 'Result' },
    })
  })

  test.each<[string, PlainObject]>([
    ['without a schema', { name: 'a' }],
    ['with a schema that is none', { name: 'a', inputSchema: true, description: 5 }],
    ['that contains itself', { name: 'a', inputSchema: { properties: { self: { $ref: '#' } } } }],
  ])('%s is kept', (_, tool) => {
    expect(trimmed(tool)).toEqual(tool)
  })

  test('with 1 MB of values, or deeply nested, is trimmed', () => {
    const values = Array.from({ length: 60_000 }, (_, i) => `value number ${i}`)
    const deep = Array.from({ length: 200 }).reduce<PlainObject>(
      inner => ({ type: 'object', properties: { next: inner }, examples: [1] }),
      { type: 'string', examples: ['x'] },
    )
    const tool = { name: 'a', inputSchema: { properties: { one: { enum: values }, deep } } }
    const text = JSON.stringify(trimmed(tool))
    expect(text).toContain('value number 59999')
    expect(text).not.toContain('examples')
  })
})

test.each([
  ['One. Two. Three.', 9, 'One. Two.'],
  ['One sentence that is too long for its place.', 20, 'One sentence that…'],
  ['Wort'.repeat(20), 20, `${'Wort'.repeat(20).slice(0, 19)}…`],
  [`${'x'.repeat(18)}😀😀😀`, 20, `${'x'.repeat(18)}…`],
  ['これは文です。もう一つの文です。', 8, 'これは文です。'],
])('%j is cut to %i characters', (text, most, expected) => {
  expect(cutText(text, most)).toBe(expected)
})

describe('a workspace with trimming', () => {
  const open = () => {
    const member = scriptedMember('a', {
      answers: {
        'tools/list': () => ({ tools: [TOOL] }),
        'tools/call': () => ({ resultType: 'complete', content: [], structuredContent: { ok: true } }),
      },
    })
    const trimming = { ...member, trim: DEFAULT_TRIM }
    return { member, ...workspaceOf([trimming], { trim: DEFAULT_TRIM }) }
  }

  test.each(REVISIONS)('lists short definitions, and gives the original on request, in %s', async revision => {
    const w = open()
    const list = await w.ask('tools/list', {}, { revision })
    expect(toolsIn(list)).toEqual(['describe_tool', 'create_issue'])
    expect(JSON.stringify(list)).not.toContain('create_issueArguments')
    const args = { name: 'describe_tool', arguments: { name: 'create_issue' } }
    const described = (await w.ask('tools/call', args, { revision })) as { content?: { text: string }[] }
    const whole = JSON.parse(described.content?.[0]?.text ?? '{}') as typeof TOOL
    expect(whole.description).toBe(LONG)
    expect(whole.inputSchema).toEqual(TOOL.inputSchema)
    if (revision === MODERN) expect(whole).toEqual(TOOL)
    const all = await w.ask('tools/list', { _meta: { 'dragoman/allTools': true } }, { revision })
    expect(JSON.stringify(all)).toContain('create_issueArguments')
    w.close()
  })

  test('calls tools as before, with structured results', async () => {
    const w = open()
    const params = { name: 'create_issue', arguments: { title: 't', region_id: 'eu' } }
    const headers = new Map([['mcp-param-region', 'eu']]) // the annotation is kept, so it is asked for
    expect(await w.ask('tools/call', params, { headers })).toMatchObject({ structuredContent: { ok: true } })
    expect(w.member.asked.at(-1)?.params.toValue()).toEqual(params)
    w.close()
  })

  test('reports what it saves', () => {
    const tools = [Json.of(TOOL)]
    const lists = new Map([['a', { tools, prompts: [], resources: [], templates: [] }]])
    const config = { name: 'w', servers: ['a'], names: 'plain', strict: false, overlays: new Map() } as const
    const policy = { allow: {}, deny: {}, readOnly: false }
    const { toolList: before } = previewWorkspace({ ...config, policy }, lists)
    const { toolList: after } = previewWorkspace({ ...config, policy, trim: DEFAULT_TRIM }, lists)
    expect(after.trimmed?.tokens).toBe(before.all.tokens - after.all.tokens)
    expect(after.trimmed?.tokens).toBeGreaterThan(100)
    expect(after.listedTools).toBe(2)
    expect(before.trimmed).toBeUndefined()
  })
})
