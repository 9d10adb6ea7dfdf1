import type { Json, PlainObject } from '../../wire/json/json.ts'

/** One piece of what a tool or a prompt says, built here or raw. */
export type Block = Json | (PlainObject & { readonly type: string })

/** Members that any piece may carry besides its own. */
type More = PlainObject

export const text = (text: string, more?: More): Block => ({ type: 'text', text, ...more })

/** A picture; `data` is base64. */
export const image = (data: string, mimeType: string, more?: More): Block => ({
  type: 'image',
  data,
  mimeType,
  ...more,
})

/** A sound; `data` is base64. */
export const audio = (data: string, mimeType: string, more?: More): Block => ({
  type: 'audio',
  data,
  mimeType,
  ...more,
})

/** A resource with its contents; `text` or `blob` is one of its members. */
export const embedded = (resource: PlainObject & { readonly uri: string }, more?: More): Block => ({
  type: 'resource',
  resource,
  ...more,
})

/** A resource to be read later. */
export const link = (resource: PlainObject & { readonly uri: string; readonly name: string }): Block => ({
  type: 'resource_link',
  ...resource,
})
