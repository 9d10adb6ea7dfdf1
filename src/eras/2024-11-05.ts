import { createHash } from 'node:crypto'
import { Json } from '../wire/json.ts'
import { mapContent } from './content.ts'
import type { Difference } from './difference.ts'

/** 2024-11-05 against 2025-03-26: no audio, no progress message, completion without a capability. */
export const difference: Difference = {
  result: {
    up: withCompletions,
    down: (method, result) => mapContent(method, withoutCompletions(method, result), soundAsResource),
  },
  notice: { down: (method, params) => (method === 'notifications/progress' ? params.without('message') : params) },
}

function soundAsResource(block: Json): Json {
  const data = block.get('data')
  if (block.get('type')?.asString() !== 'audio' || !data) return block
  const digest = createHash('sha256')
    .update(data.asString() ?? '')
    .digest('hex')
  return Json.of({
    type: 'resource',
    resource: { uri: `audio:${digest}`, mimeType: block.get('mimeType'), blob: data },
    annotations: block.get('annotations'),
  })
}

function withoutCompletions(method: string, result: Json): Json {
  const capabilities = method === 'server/discover' ? result.get('capabilities') : undefined
  return capabilities ? result.with('capabilities', capabilities.without('completions')) : result
}

/** Old servers complete without saying so; the first try tells. */
function withCompletions(method: string, result: Json): Json {
  const capabilities = method === 'server/discover' ? result.get('capabilities') : undefined
  return capabilities && !capabilities.has('completions')
    ? result.with('capabilities', capabilities.with('completions', {}))
    : result
}
