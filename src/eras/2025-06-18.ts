import type { Json } from '../wire/json.ts'
import type { Difference } from './difference.ts'

/** 2025-06-18 against 2025-11-25: tools cannot be tasks, and every question is a form. */
export const difference: Difference = {
  result: { down: withoutExecution },
  question: { down: (method, params) => (method === 'elicitation/create' ? params.without('mode') : params) },
}

function withoutExecution(method: string, result: Json): Json {
  const tools = method === 'tools/list' ? result.get('tools') : undefined
  return tools
    ? result.with(
        'tools',
        tools.map(tool => tool.without('execution')),
      )
    : result
}
