import { type Tool, tool } from '../define/tools.ts'

/** Tools whose point is their input schema. */
export const schemaTools: readonly Tool[] = [
  tool({
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    input: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    run: args => `Received: ${JSON.stringify(args)}`,
  }),
  tool({
    name: 'test_x_mcp_header',
    description: 'Has arguments that a 2026-07-28 client repeats in HTTP headers',
    input: {
      type: 'object',
      properties: {
        region: { type: 'string', description: 'Where to run', 'x-mcp-header': 'Region' },
        level: { type: 'integer', description: 'How hard to try', 'x-mcp-header': 'Level' },
        note: { type: 'string', description: 'Anything; not mirrored' },
      },
      required: ['region'],
    },
    run: ({ region, level }) => `Region ${region}, level ${level ?? 'not given'}`,
  }),
]
