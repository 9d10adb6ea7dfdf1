import { rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json.ts'
import { isBlock, mapContent } from './content.ts'
import type { Difference, Refusal } from './difference.ts'
import { mapList } from './members.ts'

/** 2025-03-26 against 2025-06-18: no structured output, no resource links, no completion context, no elicitation. */
export const difference: Difference = {
  up: {},
  down: {
    params: (method, params) => (method === 'completion/complete' ? params.without('context') : params),
    result: asPlainResult,
    question: refuseElicitation,
  },
}

function asPlainResult(method: string, result: Json): Json {
  if (method === 'tools/list') return mapList(result, 'tools', tool => withAnnotatedTitle(tool.without('outputSchema')))
  const shaped = method === 'tools/call' ? withTextForStructure(result) : result
  return mapContent(method, shaped, block => (isBlock(block, 'resource_link') ? linkAsText(block) : block))
}

/** The only title this revision shows is the one among the annotations. */
function withAnnotatedTitle(tool: Json): Json {
  const title = tool.get('title')
  const annotations = tool.get('annotations') ?? Json.empty
  if (!title || !annotations.isObject || annotations.has('title')) return tool
  return tool.with('annotations', annotations.with('title', title))
}

function withTextForStructure(result: Json): Json {
  const structure = result.get('structuredContent')
  if (!structure) return result
  const bare = result.without('structuredContent')
  const content = result.get('content')?.elements() ?? []
  if (content.some(block => isBlock(block, 'text'))) return bare
  return bare.with('content', [...content, { type: 'text', text: structure.toString() }])
}

function linkAsText(link: Json): Json {
  const parts = ['name', 'uri', 'description'].map(key => link.get(key)?.asString()).filter(part => part !== undefined)
  return Json.of({
    type: 'text',
    text: parts.join('\n'),
    annotations: link.get('annotations'),
    _meta: link.get('_meta'),
  })
}

function refuseElicitation(method: string, params: Json): Json | Refusal {
  if (method !== 'elicitation/create') return params
  return { refusal: rpcError('methodNotFound', 'The client does not take elicitation/create') }
}
