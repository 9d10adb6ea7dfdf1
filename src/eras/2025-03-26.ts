import { Json } from '../wire/json.ts'
import { mapContent } from './content.ts'
import type { Difference } from './difference.ts'

/** 2025-03-26 against 2025-06-18: no structured output, no resource links, no completion context. */
export const difference: Difference = {
  params: { down: withoutContext },
  result: { down: asPlainResult },
}

function withoutContext(method: string, params: Json): Json {
  return method === 'completion/complete' ? params.without('context') : params
}

function asPlainResult(method: string, result: Json): Json {
  if (method === 'tools/list') return withoutOutputSchemas(result)
  const shaped = method === 'tools/call' ? withTextForStructure(result) : result
  return mapContent(method, shaped, block =>
    block.get('type')?.asString() === 'resource_link' ? linkAsText(block) : block,
  )
}

function withoutOutputSchemas(result: Json): Json {
  const tools = result.get('tools')
  return tools
    ? result.with(
        'tools',
        tools.map(tool => withAnnotatedTitle(tool.without('outputSchema'))),
      )
    : result
}

/** The only title this revision shows is the one among the annotations. */
function withAnnotatedTitle(tool: Json): Json {
  const title = tool.get('title')
  const annotations = tool.get('annotations')
  if (!title || annotations?.has('title')) return tool
  return tool.with('annotations', (annotations ?? Json.empty).with('title', title))
}

function withTextForStructure(result: Json): Json {
  const structure = result.get('structuredContent')
  if (!structure) return result
  const bare = result.without('structuredContent')
  const content = result.get('content')?.elements() ?? []
  if (content.some(block => block.get('type')?.asString() === 'text')) return bare
  return bare.with('content', [...content, { type: 'text', text: structure.toString() }])
}

function linkAsText(link: Json): Json {
  const parts = ['name', 'uri', 'description'].map(key => link.get(key)?.asString()).filter(part => part !== undefined)
  return Json.of({ type: 'text', text: parts.join('\n'), annotations: link.get('annotations') })
}
