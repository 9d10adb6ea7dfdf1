import type { Json } from '../wire/json/json.ts'

/** Converts every content block of a tool result or of a prompt's messages. */
export const mapContent = (method: string, result: Json, convert: (block: Json) => Json): Json => {
  if (method === 'tools/call') {
    const content = result.get('content')
    return content ? result.with('content', content.map(convert)) : result
  }
  const messages = method === 'prompts/get' ? result.get('messages') : undefined
  return messages
    ? result.with(
        'messages',
        messages.map(message => {
          const block = message.get('content')
          return block?.isObject ? message.with('content', convert(block)) : message
        }),
      )
    : result
}

/** The kind of a content block. */
export const isBlock = (block: Json, type: string): boolean => block.get('type')?.isString(type) === true
