import type { Json } from '../../wire/json/json.ts'

/** Notices of one name that nobody has read yet are as good as their newest. */
export const mergeName = (method: string, params: Json): string | undefined => {
  if (method === 'notifications/progress') return `progress ${params.get('progressToken')}`
  if (method === 'notifications/resources/updated') return `updated ${params.get('uri')}`
  return method.endsWith('/list_changed') ? method : undefined
}
