import { Json } from '../wire/json/json.ts'

const FEW = 32 // each edit copies the list of members: beyond, writing all of them anew is cheaper

/** The object of these members, in this order whatever their names; in one go, for there may be many. */
export const objectOf = (members: readonly (readonly [string, Json])[]): Json =>
  Json.parse(Buffer.from(`{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`))

/** The object with every member's value converted; the same one if none changed. */
export const mapMembers = (object: Json, convert: (value: Json, name: string) => Json): Json => {
  const before = object.entries()
  const after = before.map(([name, value]) => [name, convert(value, name)] as const)
  const changed = after.filter(([, value], i) => value !== before[i]?.[1])
  return changed.length > FEW
    ? objectOf(after)
    : changed.reduce((edited, [name, value]) => edited.with(name, value), object)
}

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
