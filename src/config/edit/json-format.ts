/** How a JSON text is formatted, for the values that are written into it. */
export interface JsonFormat {
  readonly eol: string
  readonly unit: string // one step of indentation
  readonly isOneLine: boolean // the whole text
  /** The blanks at the start of the line of an offset. */
  indentAt(offset: number): string
  /** A value on lines of its own; a list of plain values stays on one line if it is short. */
  value(value: unknown, indent: string): string
  /** A value on one line. */
  inline(value: unknown): string
}

const LONG = 80

/** Reads from a text how it is formatted. */
export const createJsonFormat = (text: string): JsonFormat => {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const unit = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  '
  const isOneLine = !text.trimEnd().includes('\n') && text.replace(/\s/g, '') !== '{}'
  const step = unit.startsWith('\t') ? '\t' : unit

  const inline = (value: unknown): string => {
    if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    const members = membersOf(value).map(([key, member]) => `${JSON.stringify(key)}: ${inline(member)}`)
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  }

  const write = (value: unknown, indent: string): string => {
    if (isOneLine || typeof value !== 'object' || value === null) return inline(value)
    const isPlain = Array.isArray(value) && value.every(each => typeof each !== 'object')
    if (isPlain && inline(value).length <= LONG) return inline(value)
    const inner = indent + step
    const lines = Array.isArray(value)
      ? value.map(item => write(item, inner))
      : membersOf(value).map(([key, member]) => `${JSON.stringify(key)}: ${write(member, inner)}`)
    const [open, close] = Array.isArray(value) ? '[]' : '{}'
    if (lines.length === 0) return `${open}${close}`
    return `${open}${lines.map(line => `${eol}${inner}${line}`).join(',')}${eol}${indent}${close}`
  }

  return {
    eol,
    unit: step,
    isOneLine,
    indentAt: offset => /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))?.[0] ?? '',
    value: write,
    inline,
  }
}

const membersOf = (value: object): [string, unknown][] =>
  Object.entries(value).filter(([, member]) => member !== undefined)
