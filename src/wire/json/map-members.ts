import { Json } from './json.ts'

const FEW = 32 // each edit copies the list of members: for more edits, writing all members again is cheaper

/** An object with these members, in this order. Built in one step, because there may be many. */
export const objectOf = (members: readonly (readonly [string, Json])[]): Json =>
  Json.parse(Buffer.from(`{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`))

/** The object with every member's value converted; the same object if none changed. */
export const mapMembers = (object: Json, convert: (value: Json, name: string) => Json): Json => {
  const before = object.entries()
  const after = before.map(([name, value]) => [name, convert(value, name)] as const)
  const changed = after.filter(([, value], i) => value !== before[i]?.[1])
  return changed.length > FEW
    ? objectOf(after)
    : changed.reduce((edited, [name, value]) => edited.with(name, value), object)
}
