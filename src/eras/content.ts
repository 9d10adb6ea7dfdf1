import type { Json } from '../wire/json.ts'

/** Converts every content block of a tool result or of a prompt's messages. */
export const mapContent = (method: string, result: Json, convert: (block: Json) => Json): Json => {
  if (method === 'tools/call') {
    const content = result.get('content')
    return content ? result.with('content', content.map(convert)) : result
  }
  if (method !== 'prompts/get') return result
  const messages = result.get('messages')
  if (!messages) return result
  return result.with(
    'messages',
    messages.map(message => {
      const block = message.get('content')
      return block?.isObject ? message.with('content', convert(block)) : message
    }),
  )
}
