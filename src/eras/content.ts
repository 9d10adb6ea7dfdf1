import type { Json } from '../wire/json/json.ts'

/** The result with the elements of one of its lists converted. */
export const mapList = (result: Json, list: string, convert: (element: Json) => Json): Json => {
  const elements = result.get(list)
  return elements ? result.with(list, elements.map(convert)) : result
}

/** Converts the capabilities in the result of `server/discover`; other results stay. */
export const mapCapabilities = (method: string, result: Json, convert: (capabilities: Json) => Json): Json => {
  const capabilities = method === 'server/discover' ? result.get('capabilities') : undefined
  return capabilities?.isObject ? result.with('capabilities', convert(capabilities)) : result
}

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

/** Whether a content block has that type. */
export const isBlock = (block: Json, type: string): boolean => block.get('type')?.isString(type) === true
