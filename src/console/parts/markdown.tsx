import type { MarkedToken, Token, Tokens } from 'marked'
import type { ComponentChildren, VNode } from 'preact'
import { useMemo } from 'preact/hooks'
import { decodeReferences, readMarkdown } from './read-markdown.ts'
import { TextLink } from './text-link.tsx'

export interface MarkdownProps {
  readonly text: string
}

/** Markdown as elements. HTML in it is shown as text; images are links. What would take long is shown as it is. */
export const Markdown = ({ text }: MarkdownProps) => {
  const content = useMemo(() => {
    const tokens = readMarkdown(text)
    return tokens ? blocks(tokens) : <pre>{text}</pre>
  }, [text])
  return <div class="markdown">{content}</div>
}

const blocks = (tokens: readonly Token[] | undefined): ComponentChildren[] =>
  (tokens ?? []).map((token, at) => render(token as MarkedToken, at))

const HEADINGS = ['h3', 'h3', 'h4', 'h4', 'h5', 'h6'] as const // below the heading of the pane

const render = (token: MarkedToken, key: number): ComponentChildren => {
  switch (token.type) {
    case 'heading': {
      const Heading = HEADINGS[token.depth - 1] ?? 'h6'
      return <Heading key={key}>{blocks(token.tokens)}</Heading>
    }
    case 'paragraph':
      return <p key={key}>{blocks(token.tokens)}</p>
    case 'blockquote':
      return <blockquote key={key}>{blocks(token.tokens)}</blockquote>
    case 'list':
      return list(token, key)
    case 'code':
      return (
        <pre key={key}>
          <code>{token.text}</code>
        </pre>
      )
    case 'table':
      return table(token, key)
    case 'hr':
      return <hr key={key} />
    case 'strong':
      return <strong key={key}>{blocks(token.tokens)}</strong>
    case 'em':
      return <em key={key}>{blocks(token.tokens)}</em>
    case 'del':
      return <del key={key}>{blocks(token.tokens)}</del>
    case 'codespan':
      return <code key={key}>{decodeReferences(token.text)}</code>
    case 'br':
      return <br key={key} />
    case 'link':
      return (
        <TextLink key={key} href={token.href}>
          {blocks(token.tokens)}
        </TextLink>
      )
    case 'image':
      return (
        <TextLink key={key} href={token.href}>
          {token.text || token.href}
        </TextLink>
      )
    case 'text':
      return token.tokens ? blocks(token.tokens) : decodeReferences(token.text)
    case 'escape':
      return token.text
    case 'checkbox':
      return <input key={key} type="checkbox" disabled checked={token.checked} aria-label="Task" />
    case 'space':
    case 'def':
      return null
    default:
      return token.raw // HTML
  }
}

const list = ({ ordered, start, items }: Tokens.List, key: number): VNode => {
  const rows = items.map((item, at) => <li key={at}>{blocks(item.tokens)}</li>)
  return ordered ? (
    <ol key={key} start={start === '' ? 1 : start}>
      {rows}
    </ol>
  ) : (
    <ul key={key}>{rows}</ul>
  )
}

const table = ({ header, rows }: Tokens.Table, key: number): VNode => (
  <table key={key}>
    <thead>
      <tr>
        {header.map(({ tokens, text }) => (
          <th key={text}>{blocks(tokens)}</th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((cells, at) => (
        <tr key={at}>
          {cells.map(({ tokens }, column) => (
            <td key={column}>{blocks(tokens)}</td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)
