import { Json } from '../wire/json/json.ts'
import { isBlock, mapContent, mapList } from './content.ts'
import type { RevisionDifference } from './difference.ts'

/**
 * 2025-03-26 against 2025-06-18: no resource links, no completion context, structured output as text. Structured output
 * itself, its schema and elicitation stay: a client that does not know them ignores the first two and does not declare
 * the third, and several clients that negotiate this revision know them.
 */
export const difference: RevisionDifference = {
  up: {},
  down: {
    // Servers on the Java SDK reject unknown members.
    params: (method, params) => (method === 'completion/complete' ? params.without('context') : params),
    result: asOlderResult,
  },
}

function asOlderResult(method: string, result: Json): Json {
  if (method === 'tools/list') return mapList(result, 'tools', withAnnotatedTitle)
  const shaped = method === 'tools/call' ? withStructureAsText(result) : result
  return mapContent(method, shaped, block => (isBlock(block, 'resource_link') ? linkAsText(block) : block))
}

/** The only title this revision shows is the one among the annotations. */
function withAnnotatedTitle(tool: Json): Json {
  const title = tool.get('title')
  const annotations = tool.get('annotations') ?? Json.empty
  if (!title || !annotations.isObject || annotations.has('title')) return tool
  return tool.with('annotations', annotations.with('title', title))
}

function withStructureAsText(result: Json): Json {
  const structure = result.get('structuredContent')
  const content = result.get('content')?.elements() ?? []
  if (!structure || content.some(block => isBlock(block, 'text'))) return result
  return result.with('content', [...content, { type: 'text', text: structure.toString() }])
}

/** A block of an unknown type fails the whole call in the SDKs; members a text block does not have do not. */
function linkAsText(link: Json): Json {
  const parts = ['name', 'uri', 'description'].map(key => link.get(key)?.asString()).filter(part => part !== undefined)
  return link.with('type', 'text').with('text', parts.join('\n'))
}
