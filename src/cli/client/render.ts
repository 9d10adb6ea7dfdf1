import { Json } from '../../wire/json/json.ts'
import type { MediaOutput } from './media.ts'
import { type Style, safeLine, shownText, type Terminal } from './terminal.ts'

/** JSON with line breaks; numbers and strings stay as they were written. */
export const prettyJson = (value: Json, indent = ''): string => {
  const inner = `${indent}  `
  if (value.kind === 'array') {
    const items = value.elements()
    if (items.length === 0) return '[]'
    return `[\n${items.map(item => inner + prettyJson(item, inner)).join(',\n')}\n${indent}]`
  }
  if (!value.isObject) return value.toString()
  const members = value.entries()
  if (members.length === 0) return '{}'
  const lines = members.map(([key, member]) => `${inner}${JSON.stringify(key)}: ${prettyJson(member, inner)}`)
  return `{\n${lines.join(',\n')}\n${indent}}`
}

/** Where content is shown. */
export interface ContentOutput {
  readonly stream: Terminal['output']
  readonly style: Style
  readonly media: MediaOutput
}

/** The result of a tool as people read it: its content, and structured content that the text does not repeat. */
export const renderToolResult = async (result: Json, output: ContentOutput): Promise<string> => {
  const blocks = result.get('content')?.elements() ?? []
  const structured = result.get('structuredContent')
  const shown = structured ? blocks.filter(block => !isSameJson(block.get('text')?.asString(), structured)) : blocks
  const parts: string[] = []
  for (const block of shown) parts.push(await renderBlock(block, output))
  if (structured && !isWrappedText(structured, blocks)) parts.push(shownText(prettyJson(structured), output.stream))
  return joinParts(parts)
}

/** A text block that repeats the structured content, as the specification asks servers to send. */
const isSameJson = (text: string | undefined, structured: Json): boolean => {
  if (text === undefined || !/^\s*[[{]/.test(text)) return false
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(structured.toValue())
  } catch {
    return false
  }
}

/** Several libraries send a text, or the JSON in it, also as the only member of structured content. */
const isWrappedText = (structured: Json, blocks: readonly Json[]): boolean => {
  const [[, only] = [], ...others] = structured.entries()
  if (!only || others.length > 0) return false
  const texts = blocks.map(block => block.get('text')?.asString())
  return texts.some(text => text !== undefined && (text === only.asString() || isSameJson(text, only)))
}

const joinParts = (parts: readonly string[]): string =>
  parts.map(part => (part === '' || part.endsWith('\n') ? part : `${part}\n`)).join('')

/** One block of content. */
const renderBlock = async (block: Json, output: ContentOutput): Promise<string> => {
  const { stream, style } = output
  switch (block.get('type')?.asString()) {
    case 'text':
      return shownText(block.get('text')?.asString() ?? '', stream)
    case 'image':
    case 'audio':
      return renderData(block.get('data'), block.get('mimeType')?.asString() ?? 'application/octet-stream', output)
    case 'resource':
      return renderContents(block.get('resource') ?? Json.empty, output)
    case 'resource_link': {
      const name = block.get('title')?.asString() ?? block.get('name')?.asString() ?? ''
      return safeLine(`${name} ${style.dim(`<${block.get('uri')?.asString() ?? ''}>`)}`)
    }
    default:
      return shownText(prettyJson(block), stream)
  }
}

/** The contents of a resource: text as it is, bytes like an image. */
export const renderContents = async (contents: Json, output: ContentOutput): Promise<string> => {
  const text = contents.get('text')?.asString()
  if (text !== undefined) return shownText(text, output.stream)
  return renderData(contents.get('blob'), contents.get('mimeType')?.asString() ?? 'application/octet-stream', output)
}

const renderData = async (
  data: Json | undefined,
  mimeType: string,
  { media, style }: ContentOutput,
): Promise<string> => {
  const bytes = Buffer.from(data?.asString() ?? '', 'base64')
  const shown = media.show(bytes, mimeType)
  if (shown !== undefined) return `${shown}\n`
  const file = await media.save(bytes, mimeType)
  return `${file} ${style.dim(`(${safeLine(mimeType)}, ${bytes.length} bytes)`)}`
}

/** The messages of a prompt. */
export const renderMessages = async (messages: readonly Json[], output: ContentOutput): Promise<string> => {
  const parts: string[] = []
  for (const message of messages) {
    const role = safeLine(message.get('role')?.asString() ?? '')
    const content = message.get('content')
    const blocks = content?.kind === 'array' ? content.elements() : content ? [content] : []
    const shown: string[] = []
    for (const block of blocks) shown.push(await renderBlock(block, output))
    parts.push(`${output.style.bold(`${role}:`)} ${joinParts(shown)}`)
  }
  return joinParts(parts)
}
