import { visit } from 'jsonc-parser'
import { tomlHeader } from '../edit/toml-edit.ts'
import type { McpClient } from './client-files.ts'

const HIDDEN = '…'

interface Replacement {
  readonly from: number
  readonly to: number
  readonly text: string
}

/**
 * The text of a client's file for a preview. It may hold secrets of other servers: all texts and comments are replaced, except
 * in the entry `shown`, where only bearer tokens are. Names of keys stay.
 */
export const maskValues = ({ key, format }: McpClient, text: string, shown: string | undefined): string =>
  format === 'toml' ? maskToml(text, key, shown) : maskJson(text, key, shown)

const hideBearer = (text: string): string => text.replace(/(Bearer )[^"'\s]+/gi, `$1${HIDDEN}`)

const maskJson = (text: string, key: string, shown: string | undefined): string => {
  const found: Replacement[] = []
  visit(
    text,
    {
      onLiteralValue: (value, offset, length, _line, _column, pathOf) => {
        if (typeof value !== 'string') return
        const [first, second] = pathOf()
        const isShown = shown !== undefined && first === key && second === shown
        const raw = text.slice(offset, offset + length)
        found.push({ from: offset, to: offset + length, text: isShown ? hideBearer(raw) : `"${HIDDEN}"` })
      },
      onComment: (offset, length) => {
        const isLine = text.startsWith('//', offset)
        found.push({ from: offset, to: offset + length, text: isLine ? `// ${HIDDEN}` : `/* ${HIDDEN} */` })
      },
    },
    { allowTrailingComma: true, disallowComments: false },
  )
  let end = 0
  const parts: string[] = []
  for (const { from, to, text: masked } of found) {
    parts.push(text.slice(end, from), masked)
    end = to
  }
  return [...parts, text.slice(end)].join('')
}

const ASSIGNMENT = /^(\s*[\w."'-]+\s*=\s*)(.*)$/

/** By lines: everything behind the `=`, and lines that continue a value. */
const maskToml = (text: string, section: string, shown: string | undefined): string => {
  let isShown = false
  let quotes: string | undefined // of a text of several lines
  return text
    .split('\n')
    .map(line => {
      const isInside = quotes !== undefined
      for (const [mark] of line.matchAll(/"""|'''/g)) {
        if (quotes === undefined) quotes = mark
        else if (quotes === mark) quotes = undefined
      }
      const header = isInside ? undefined : tomlHeader(line)
      if (header) {
        isShown = header[0] === section && header[1] === shown
        return line.replace(/#.*$/, `# ${HIDDEN}`)
      }
      if (isShown) return hideBearer(line)
      if (line.trim() === '') return line
      const [, left] = (isInside ? undefined : ASSIGNMENT.exec(line)) ?? []
      return left === undefined ? line.replace(/\S.*$/, HIDDEN) : `${left}${HIDDEN}`
    })
    .join('\n')
}
