import type { Json } from '../wire/json/json.ts'

/** The result with the elements of one of its lists converted. */
export const mapList = (result: Json, list: string, convert: (element: Json) => Json): Json => {
  const elements = result.get(list)
  return elements ? result.with(list, elements.map(convert)) : result
}

/** Changes the capabilities a discovery tells; every other result stays. */
export const mapCapabilities = (method: string, result: Json, convert: (capabilities: Json) => Json): Json => {
  const capabilities = method === 'server/discover' ? result.get('capabilities') : undefined
  return capabilities?.isObject ? result.with('capabilities', convert(capabilities)) : result
}
