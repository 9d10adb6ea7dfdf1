import type { Json, PlainObject } from '../../wire/json/json.ts'

/** One content block of a tool result or a prompt. */
export type Block = Json | (PlainObject & { readonly type: string })

/** Further members of a block, such as `annotations`. */
type More = PlainObject

export const text = (text: string, more?: More): Block => ({ type: 'text', text, ...more })

/** `data` is base64. */
export const image = (data: string, mimeType: string, more?: More): Block => media('image', data, mimeType, more)

/** `data` is base64. */
export const audio = (data: string, mimeType: string, more?: More): Block => media('audio', data, mimeType, more)

const media = (type: string, data: string, mimeType: string, more?: More): Block => ({ type, data, mimeType, ...more })

/** A resource with its contents: `text` or `blob` is one of its members. */
export const embedded = (resource: PlainObject & { readonly uri: string }, more?: More): Block => ({
  type: 'resource',
  resource,
  ...more,
})

/** A link to a resource. */
export const link = (resource: PlainObject & { readonly uri: string; readonly name: string }): Block => ({
  type: 'resource_link',
  ...resource,
})
