import { Json } from '../../wire/json/json.ts'

const CHANGES: Readonly<Record<string, string>> = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
}

/** What a listener may have missed while nobody could tell him: everything he listens to, as its server acknowledged it. */
export const missedBy = (acknowledged: Json): { readonly method: string; readonly params: Json }[] => {
  const honoured = acknowledged.get('notifications')
  const lists = Object.entries(CHANGES).filter(([flag]) => honoured?.get(flag)?.asBoolean() === true)
  const uris = honoured?.get('resourceSubscriptions')?.elements() ?? []
  return [
    ...lists.map(([, method]) => ({ method, params: Json.empty })),
    ...uris.map(uri => ({ method: 'notifications/resources/updated', params: Json.of({ uri }) })),
  ]
}
