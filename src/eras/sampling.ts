import type { Json } from '../wire/json/json.ts'
import { isBlock, mapList } from './content.ts'

/** All content blocks of the messages of a sampling request. */
export const blocksOf = (params: Json): readonly Json[] =>
  (params.get('messages')?.elements() ?? []).flatMap(message => blocksIn(message.get('content')))

const blocksIn = (content: Json | undefined): readonly Json[] => {
  if (!content) return []
  return content.kind === 'array' ? content.elements() : [content]
}

/** Converts all content blocks of the messages of a sampling request. */
export const mapBlocks = (params: Json, convert: (block: Json) => Json): Json =>
  mapList(params, 'messages', message => {
    const content = message.get('content')
    if (!content) return message
    return message.with('content', content.kind === 'array' ? content.map(convert) : convert(content))
  })

/** Whether a sampling request offers tools or contains their calls or results. */
export const usesTools = (params: Json): boolean =>
  params.has('tools') ||
  params.has('toolChoice') ||
  blocksOf(params).some(block => isBlock(block, 'tool_use') || isBlock(block, 'tool_result'))

/** One message for each block, of the same role and in the same order. */
export const splitMessages = (params: Json): Json => {
  const messages = params.get('messages')?.elements() ?? []
  if (!messages.some(message => message.get('content')?.kind === 'array')) return params
  return params.with(
    'messages',
    messages.flatMap(message => {
      const content = message.get('content')
      if (content?.kind !== 'array') return [message]
      const blocks = content.elements().filter(block => block.isObject)
      return blocks.map(block => message.with('content', block))
    }),
  )
}

/** A reply of several blocks as one: the text of all, or the first where there is no text. */
export const joinReply = (reply: Json): Json => {
  const content = reply.get('content')
  if (content?.kind !== 'array') return reply
  const blocks = content.elements()
  const texts = blocks.filter(block => isBlock(block, 'text'))
  const [first] = texts.length > 0 ? texts : blocks
  if (texts.length < 2) return reply.with('content', first ?? { type: 'text', text: '' })
  return reply.with('content', {
    type: 'text',
    text: texts.map(block => block.get('text')?.asString() ?? '').join('\n'),
  })
}
