import { STATUS_CODES } from 'node:http'
import { Json } from '../../../wire/json/json.ts'
import { audio, type Block, embedded, image, text } from '../../define/content.ts'
import type { ToolOutput } from '../../define/tools.ts'
import { bareMediaType, isJsonType, isTextType } from '../media-types.ts'
import type { ApiResponse } from './api-response-reader.ts'
import { resultOfEvents } from './event-results.ts'

/** What the answer to a call depends on, besides the response. */
export interface ResponseContext {
  readonly url: string // of the request, without the parameters of the entry
  readonly isJsonOnly: boolean // every success should be JSON
  readonly needs: readonly string[] // the credentials that the document names
}

const SHOWN_PAGE = 2000 // characters of a page that comes instead of JSON

/** The result of a call: an error status becomes a tool error with the status and the body, so that the model can react. */
export const readResponse = (response: ApiResponse, context: ResponseContext): ToolOutput => {
  const { status, events, isCut } = response
  if (status >= 300) return { content: [text(describeError(response, context))], isError: true }
  if (events) return resultOfEvents(events, isCut)
  return response.body.length === 0
    ? { content: [text(`HTTP ${statusText(status)}, without a body`)] }
    : readBody(response, context)
}

const readBody = (response: ApiResponse, { url, isJsonOnly }: ResponseContext): ToolOutput => {
  const { body, headers } = response
  const header = headers['content-type'] ?? ''
  const mediaType = bareMediaType(header)
  const json = isJsonType(mediaType) || mediaType === '' ? parseJson(body) : undefined
  if (json) return { content: [text(json.toString())], ...(json.isObject && { structuredContent: json }) }
  if (isJsonOnly) return { content: [text(describeWrongType(response, mediaType))], isError: true }
  return { content: [blockOf(body, mediaType, header, url)] }
}

const parseJson = (body: Buffer): Json | undefined => {
  try {
    return Json.parse(body)
  } catch {
    return undefined
  }
}

/** Text, image, audio, or the bytes as an embedded resource. */
const blockOf = (body: Buffer, mediaType: string, header: string, uri: string): Block => {
  if (isTextType(mediaType)) return text(decode(body, header))
  if (mediaType === '' && isText(body)) return text(decode(body, header))
  const data = body.toString('base64')
  if (mediaType.startsWith('image/')) return image(data, mediaType)
  if (mediaType.startsWith('audio/')) return audio(data, mediaType)
  return embedded({ uri, mimeType: mediaType || 'application/octet-stream', blob: data })
}

const isText = (body: Buffer): boolean => !body.subarray(0, 1024).includes(0)

/** In the charset of the header; bytes that are invalid in it are replaced. */
const decode = (body: Buffer, header: string): string => {
  const charset = /charset\s*=\s*"?([\w.:-]+)/i.exec(header)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return body.toString('utf8')
  }
}

const statusText = (status: number): string => `${status} ${STATUS_CODES[status] ?? ''}`.trimEnd()

const describeError = ({ status, headers, body, isCut }: ApiResponse, { needs }: ResponseContext): string => {
  const header = headers['content-type'] ?? ''
  const mediaType = bareMediaType(header)
  const isReadable = mediaType === '' || isJsonType(mediaType) || isTextType(mediaType)
  const shown = isReadable ? decode(body, header).trim() : `(${body.length} bytes of ${mediaType})`
  const details = [
    `HTTP ${statusText(status)}`,
    ...(headers.location !== undefined && status < 400 ? [`Location: ${headers.location.slice(0, 500)}`] : []),
    ...(headers['retry-after'] !== undefined ? [`Retry-After: ${headers['retry-after'].slice(0, 100)}`] : []),
    ...(shown === '' ? [] : [shown + (isCut ? ' … (cut)' : '')]),
    ...(status === 401 && needs.length > 0 ? [`The entry of this server needs ${needs.join(', or ')}.`] : []),
  ]
  return details.join('\n')
}

const describeWrongType = ({ status, headers, body }: ApiResponse, mediaType: string): string => {
  const page = decode(body.subarray(0, SHOWN_PAGE * 4), headers['content-type'] ?? '').slice(0, SHOWN_PAGE)
  const what =
    isJsonType(mediaType) || mediaType === '' ? 'a body that is not valid JSON' : `${mediaType} instead of JSON`
  return `HTTP ${statusText(status)} with ${what}; is the address of the API right?\n${page}`
}
