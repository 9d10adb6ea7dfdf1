import { findNodeAtLocation, getNodeValue, type Node, parseTree } from 'jsonc-parser'
import { createJsonFormat, type JsonFormat } from './json-format.ts'

/** A change of one value: `undefined` removes it. */
export interface JsonChange {
  readonly path: readonly string[]
  readonly value: unknown
}

/** A JSON text that is being edited: every edit changes its own characters only, so that comments and formatting stay. */
interface EditedText {
  readonly text: string
  readonly format: JsonFormat
}

/** A piece of text to put in the place of `[from, to)`. */
interface TextEdit {
  readonly from: number
  readonly to: number
  readonly text: string
}

const BOM = '\ufeff'

/** Sets or removes one value of a valid JSON text. The containers on the way are created; other values are in their way. */
export const changeMember = (source: string, { path, value }: JsonChange): string => {
  const [bom, text] = source.startsWith(BOM) ? [BOM, source.slice(1)] : ['', source]
  const edited = { text, format: createJsonFormat(text) }
  const edits = value === undefined ? removal(edited, path) : assignment(edited, path, value)
  return bom + apply(text, edits)
}

/** Gives a member another name; its value, its place and the comments around it stay. */
export const renameMember = (source: string, path: readonly string[], name: string): string => {
  const [bom, text] = source.startsWith(BOM) ? [BOM, source.slice(1)] : ['', source]
  const key = nodeAt(text, path)?.parent?.children?.[0]
  return bom + (key ? apply(text, [{ from: key.offset, to: endOf(key), text: JSON.stringify(name) }]) : text)
}

/** Edits at the same place are applied in their order. */
const apply = (text: string, edits: readonly TextEdit[]): string => {
  let [result, at] = ['', 0]
  for (const edit of [...edits].sort((a, b) => a.from - b.from)) {
    result += text.slice(at, edit.from) + edit.text
    at = edit.to
  }
  return result + text.slice(at)
}

const nodeAt = (text: string, path: readonly string[]): Node | undefined => {
  const root = parseTree(text, [], { allowTrailingComma: true })
  return root && lastAt(root, path)
}

/** Of a key that is written twice, the last one counts. */
const lastAt = (node: Node, [step, ...rest]: readonly string[]): Node | undefined => {
  if (step === undefined) return node
  if (node.type !== 'object') return findNodeAtLocation(node, [step])
  const member = node.children?.findLast(({ children }) => children?.[0]?.value === step)?.children?.[1]
  return member && lastAt(member, rest)
}

const endOf = ({ offset, length }: Node): number => offset + length

const assignment = (edited: EditedText, path: readonly string[], value: unknown): readonly TextEdit[] => {
  const { text, format } = edited
  const found = nodeAt(text, path)
  const [key = '', ...outer] = [...path].reverse()
  if (found?.type === 'array' && Array.isArray(value) && found.children?.length)
    return replaceItems(edited, found, value)
  if (found) {
    const isInline = !text.slice(found.offset, endOf(found)).includes('\n') && isScalarList(value)
    const written = isInline ? format.inline(value) : format.value(value, format.indentAt(found.offset))
    return [{ from: found.offset, to: endOf(found), text: written }]
  }
  const parentPath = outer.reverse()
  const parent = nodeAt(text, parentPath)
  if (parent?.type === 'object')
    return insertion(edited, parent, parent.children?.length ?? 0, [
      indent => `${JSON.stringify(key)}: ${format.value(value, indent)}`,
      () => `${JSON.stringify(key)}: ${format.inline(value)}`,
    ])
  return assignment(edited, parentPath, { [key]: value })
}

const isScalarList = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Array.isArray(value) && value.every(each => typeof each !== 'object'))

/** Items that stay at the start and the end of a list keep their text, so that comments beside them stay, too. */
const replaceItems = (edited: EditedText, list: Node, next: readonly unknown[]): readonly TextEdit[] => {
  const { format } = edited
  const old = list.children ?? []
  const texts = old.map(node => JSON.stringify(getNodeValue(node)))
  const wanted = next.map(item => JSON.stringify(item))
  let start = 0
  while (start < Math.min(texts.length, wanted.length) && texts[start] === wanted[start]) start++
  let kept = 0
  const most = Math.min(texts.length, wanted.length) - start
  while (kept < most && texts.at(-1 - kept) === wanted.at(-1 - kept)) kept++
  const [gone, added] = [old.slice(start, old.length - kept), next.slice(start, next.length - kept)]
  const same = gone.slice(0, added.length).map((node, at) => ({
    from: node.offset,
    to: endOf(node),
    text: format.value(added[at], format.indentAt(node.offset)),
  }))
  if (gone.length === added.length) return same
  if (gone.length < added.length) {
    const rest = added.slice(gone.length)
    const write = (one: (item: unknown) => string, between: string): string => rest.map(one).join(`,${between}`)
    const at = start + gone.length
    return [
      ...same,
      ...insertion(edited, list, at, [
        indent => write(item => format.value(item, indent), format.eol + indent),
        () => write(format.inline, ' '),
      ]),
    ]
  }
  if (next.length === 0) return [{ from: list.offset, to: endOf(list), text: '[]' }]
  const first = old[start + added.length] as Node
  const last = old[old.length - kept - 1] as Node
  return [...same, ...cut(edited, list, first, last)]
}

type Write = (indent: string) => string

/** Puts a member before the one at `index`; the first of `forms` is for a place of its own line, the second for one line. */
const insertion = (
  { text, format }: EditedText,
  container: Node,
  index: number,
  forms: readonly [Write, Write],
): readonly TextEdit[] => {
  const { eol } = format
  const children = container.children ?? []
  const [open, close] = [container.offset + 1, endOf(container) - 1]
  const before = children[index - 1]
  const outer = format.indentAt(container.offset)
  if (children.length === 0) {
    const inner = text.slice(open, close)
    if (format.isOneLine) return [{ from: open, to: close, text: ` ${forms[1]('')} ` }]
    const kept = inner.trimEnd() // comments
    const indent = outer + format.unit
    return [{ from: open, to: close, text: `${kept}${eol}${indent}${forms[0](indent)}${eol}${outer}` }]
  }
  const first = children[0] as Node
  const isOneLine = !text.slice(open, first.offset).includes('\n')
  const indent = isOneLine ? outer : format.indentAt(first.offset)
  if (!before) {
    const written = isOneLine ? `${forms[1](indent)}, ` : `${forms[0](indent)},${eol}${indent}`
    return [{ from: first.offset, to: first.offset, text: written }]
  }
  const comma = commaAfter(text, endOf(before), close)
  const hasNext = index < children.length
  if (isOneLine) {
    const at = comma === undefined ? endOf(before) : comma + 1
    const written = `${comma === undefined ? ',' : ''} ${forms[1](indent)}${comma === undefined ? '' : ','}`
    return [{ from: at, to: at, text: written }]
  }
  const at = lineRest(text, comma === undefined ? endOf(before) : comma + 1, close)
  const needsComma = hasNext || comma !== undefined
  return [
    ...(comma === undefined ? [{ from: endOf(before), to: endOf(before), text: ',' }] : []),
    { from: at, to: at, text: `${eol}${indent}${forms[0](indent)}${needsComma ? ',' : ''}` },
  ]
}

const removal = (edited: EditedText, path: readonly string[]): readonly TextEdit[] => {
  const member = nodeAt(edited.text, path)?.parent
  const container = member?.parent
  return member && container ? cut(edited, container, member, member) : []
}

/** Removes members from `first` to `last`, with the comments on their lines and those directly above them. */
const cut = ({ text }: EditedText, container: Node, first: Node, last: Node): readonly TextEdit[] => {
  const children = container.children ?? []
  const [open, close] = [container.offset + 1, endOf(container) - 1]
  const [at, until] = [children.indexOf(first), children.indexOf(last)]
  const [before, next] = [children[at - 1], children[until + 1]]
  const comma = commaAfter(text, endOf(last), close)
  const end = comma === undefined ? endOf(last) : comma + 1
  const lineStart = text.lastIndexOf('\n', first.offset - 1) + 1
  const rest = lineRest(text, end, close)
  const ownsLines = text.slice(lineStart, first.offset).trim() === '' && /^\s*\n/.test(text.slice(rest))
  if (!ownsLines) {
    if (next) return [{ from: first.offset, to: next.offset, text: '' }]
    return [{ from: before ? endOf(before) : first.offset, to: before ? endOf(last) : end, text: '' }]
  }
  const from = before ? attachedFrom(text, lineStart, before ? endOf(before) : open) : lineStart
  const isEmptied = !before && !next && (text.slice(open, from) + text.slice(rest, close)).trim() === ''
  if (isEmptied) return [{ from: open, to: close, text: '' }]
  const after = text.indexOf('\n', rest) + 1
  // The member before it is the last now: as many commas at the end as there were.
  const loose = !next && before && comma === undefined ? commaAfter(text, endOf(before), close) : undefined
  return [...(loose === undefined ? [] : [{ from: loose, to: loose + 1, text: '' }]), { from, to: after, text: '' }]
}

/** Where the comments begin that stand on lines of their own directly above a line. */
const attachedFrom = (text: string, lineStart: number, least: number): number => {
  let from = lineStart
  for (;;) {
    const above = text.lastIndexOf('\n', from - 2) + 1
    const isComment = /^[ \t]*(\/\/.*|\/\*[^\n]*\*\/[ \t]*)\r?$/.test(text.slice(above, from - 1))
    if (above <= least || !isComment) return from
    from = above
  }
}

/** The comma after a member, behind blanks and comments. */
const commaAfter = (text: string, from: number, to: number): number | undefined => {
  const found = /^(?:\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)*,/.exec(text.slice(from, to))
  return found ? from + found[0].length - 1 : undefined
}

/** The end of what stands on the rest of a line: blanks and comments. */
const lineRest = (text: string, from: number, to: number): number => {
  const found = /^(?:[ \t]*\/\*[^\n]*?\*\/)*(?:[ \t]*\/\/[^\r\n]*)?/.exec(text.slice(from, to))
  return from + (found?.[0].length ?? 0)
}
