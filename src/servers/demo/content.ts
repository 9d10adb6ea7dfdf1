import { audio, embedded, image, link, text } from '../define/content.ts'
import { type Tool, tool } from '../define/tools.ts'
import { RED_PIXEL, SILENCE } from './samples.ts'

/** One tool for every kind of content a result can have. */
export const contentTools: readonly Tool[] = [
  tool({
    name: 'test_simple_text',
    description: 'Returns one text',
    run: () => 'This is a simple text response for testing.',
  }),
  tool({
    name: 'test_image_content',
    description: 'Returns one picture',
    run: () => [image(RED_PIXEL, 'image/png')],
  }),
  tool({
    name: 'test_audio_content',
    description: 'Returns one sound',
    run: () => [audio(SILENCE, 'audio/wav')],
  }),
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
    description: 'Returns a text, a picture and a resource',
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
    description: 'Always fails, as a tool does',
    run: () => {
      throw new Error('This tool intentionally returns an error for testing')
    },
  }),
]
