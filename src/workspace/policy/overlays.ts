import type { Overlay } from '../../config/snapshot.ts'
import { Json, type Plain } from '../../wire/json/json.ts'

/** The definition of a tool with an overlay, except for its name, which `catalog/names.ts` decides. */
export const showOverlay = (item: Json, overlay: Overlay): Json => {
  let shown = item
  if (overlay.title !== undefined) shown = shown.with('title', overlay.title)
  if (overlay.description !== undefined) shown = shown.with('description', overlay.description)
  if (overlay.annotations) shown = shown.with('annotations', withAll(shown.get('annotations'), overlay.annotations))
  const schema = shown.get('inputSchema')
  const adapted = schema?.isObject ? adaptSchema(schema, overlay) : schema
  return adapted ? shown.with('inputSchema', adapted) : shown
}

/** The arguments of a call for the server: fixed ones always replace the caller's, defaults only fill in missing ones. */
export const withOverlayArguments = (args: Json, overlay: Overlay): Json => {
  let filled = args.isObject ? args : Json.empty
  for (const [name, value] of Object.entries(overlay.defaults))
    if (!filled.has(name)) filled = filled.with(name, value as Plain)
  return withAll(filled, overlay.fixed)
}

/** Whether an overlay changes the arguments of a call. */
export const changesArguments = ({ fixed, defaults }: Overlay): boolean =>
  Object.keys(fixed).length > 0 || Object.keys(defaults).length > 0

const withAll = (json: Json | undefined, members: Readonly<Record<string, unknown>>): Json => {
  let merged = json?.isObject ? json : Json.empty
  for (const [name, value] of Object.entries(members)) merged = merged.with(name, value as Plain)
  return merged
}

/** Removes fixed arguments from the schema, and makes those with a default optional. */
const adaptSchema = (schema: Json, { fixed, defaults }: Overlay): Json => {
  const filled = new Set([...Object.keys(fixed), ...Object.keys(defaults)])
  if (filled.size === 0) return schema
  let adapted = schema
  const properties = schema.get('properties')
  if (properties?.isObject) adapted = adapted.with('properties', adaptProperties(properties, fixed, defaults))
  const required = schema.get('required')
  const left = required?.map(name => (filled.has(name.asString() ?? '') ? undefined : name))
  if (!left) return adapted
  return left.elements().length > 0 ? adapted.with('required', left) : adapted.without('required')
}

const adaptProperties = (properties: Json, fixed: Overlay['fixed'], defaults: Overlay['defaults']): Json => {
  let adapted = properties.without(...Object.keys(fixed))
  for (const [name, value] of Object.entries(defaults)) {
    const property = adapted.get(name)
    if (property?.isObject) adapted = adapted.with(name, property.with('default', value as Plain))
  }
  return adapted
}
