import { audio, embedded, image, link, text } from '../define/content.ts'
import { type Tool, tool } from '../define/tools.ts'

/** A PNG with one red pixel, in base64. */
export const RED_PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC'

/** A WAV with two silent samples, in base64. */
const SILENCE = 'UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQQAAAAAAAAA'

/** Tools that return a result at once: two to try first, one for each kind of content, two for input schemas. */
export const resultTools: readonly Tool[] = [
  tool({
    name: 'example-ping',
    title: 'Ping',
    description: 'Returns a simple pong response',
    annotations: { readOnlyHint: true },
    run: () => 'pong',
  }),
  tool({
    name: 'example-echo',
    title: 'Echo',
    description: 'Echoes back the provided message',
    input: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to echo back' } },
      required: ['message'],
    },
    annotations: { readOnlyHint: true },
    run: ({ message }) => `Echo: ${message}`,
  }),
  tool({
    name: 'test_simple_text',
    description: 'Returns one text',
    run: () => 'This is a simple text response for testing.',
  }),
  tool({
    name: 'test_image_content',
    description: 'Returns one image',
    run: () => [image(RED_PIXEL, 'image/png')],
  }),
  tool({ name: 'test_audio_content', description: 'Returns one audio clip', run: () => [audio(SILENCE, 'audio/wav')] }),
  tool({
    name: 'test_embedded_resource',
    description: 'Returns a resource with its contents',
    run: () => [
      embedded({
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      }),
    ],
  }),
  tool({
    name: 'test_multiple_content_types',
    description: 'Returns a text, an image and a resource',
    run: () => [
      text('Multiple content types test:'),
      image(RED_PIXEL, 'image/png'),
      embedded({
        uri: 'test://mixed-content-resource',
        mimeType: 'application/json',
        text: JSON.stringify({ test: 'data', value: 123 }),
      }),
    ],
  }),
  tool({
    name: 'test_resource_link',
    description: 'Returns a link to a resource of this server',
    run: () => [link({ uri: 'test://static-text', name: 'static-text', mimeType: 'text/plain' })],
  }),
  tool({
    name: 'test_structured_content',
    description: 'Returns structured content that follows an output schema',
    output: {
      type: 'object',
      properties: { temperature: { type: 'number' }, conditions: { type: 'string' } },
      required: ['temperature', 'conditions'],
    },
    run: () => ({ structuredContent: { temperature: 22.5, conditions: 'sunny' } }),
  }),
  tool({
    name: 'test_error_handling',
    description: 'Always fails',
    run: () => {
      throw new Error('This tool intentionally returns an error for testing')
    },
  }),
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
