import type { Overlay } from '../../config/snapshot.ts'
import { Json, type Plain } from '../../wire/json/json.ts'

/** The definition of a tool as an overlay shows it; its name is the business of the name table. */
export const showOverlay = (item: Json, overlay: Overlay): Json => {
  let shown = item
  if (overlay.title !== undefined) shown = shown.with('title', overlay.title)
  if (overlay.description !== undefined) shown = shown.with('description', overlay.description)
  if (overlay.annotations) shown = shown.with('annotations', laidOver(shown.get('annotations'), overlay.annotations))
  const schema = shown.get('inputSchema')
  const fitted = schema?.isObject ? fitSchema(schema, overlay) : schema
  return fitted ? shown.with('inputSchema', fitted) : shown
}

/** The arguments of a call as the server gets them: fixed ones whatever the caller said, defaults where it said nothing. */
export const callWith = (args: Json, overlay: Overlay): Json => {
  let filled = args.isObject ? args : Json.empty
  for (const [name, value] of Object.entries(overlay.defaults))
    if (!filled.has(name)) filled = filled.with(name, value as Plain)
  for (const [name, value] of Object.entries(overlay.fixed)) filled = filled.with(name, value as Plain)
  return filled
}

/** Whether an overlay changes the arguments of a call. */
export const changesArguments = ({ fixed, defaults }: Overlay): boolean =>
  Object.keys(fixed).length > 0 || Object.keys(defaults).length > 0

const laidOver = (own: Json | undefined, over: Readonly<Record<string, unknown>>): Json => {
  let merged = own?.isObject ? own : Json.empty
  for (const [name, value] of Object.entries(over)) merged = merged.with(name, value as Plain)
  return merged
}

/** Fixed arguments are not there for callers; those with a default need not be given. */
const fitSchema = (schema: Json, { fixed, defaults }: Overlay): Json => {
  const filled = new Set([...Object.keys(fixed), ...Object.keys(defaults)])
  if (filled.size === 0) return schema
  let fitted = schema
  const properties = schema.get('properties')
  if (properties?.isObject) fitted = fitted.with('properties', fitProperties(properties, fixed, defaults))
  const required = schema.get('required')
  const left = required?.map(name => (filled.has(name.asString() ?? '') ? undefined : name))
  if (!left) return fitted
  return left.elements().length > 0 ? fitted.with('required', left) : fitted.without('required')
}

const fitProperties = (properties: Json, fixed: Overlay['fixed'], defaults: Overlay['defaults']): Json => {
  let fitted = properties.without(...Object.keys(fixed))
  for (const [name, value] of Object.entries(defaults)) {
    const property = fitted.get(name)
    if (property?.isObject) fitted = fitted.with(name, property.with('default', value as Plain))
  }
  return fitted
}
