/** An entry that a link carries, as JSON text. */
export interface LinkedConfig {
  readonly name?: string | undefined
  readonly json: string
}

const LINK = /^(cursor|vscode|vscode-insiders):\/?\/?\S+$|^https:\/\/\S+\/(install-mcp|redirect\/mcp\/install)\?\S+$/
const IN_VSCODE = /^vscode(?:-insiders)?:\/?\/?mcp\/install\?(.+)$/

/**
 * The entry in an "Add to …" link of Cursor or VS Code: Cursor encodes it in base64, VS Code as part of the address.
 * Undefined if the text is no such link.
 */
export const linkedConfig = (text: string): LinkedConfig | undefined => {
  if (!LINK.test(text)) return undefined
  const inPath = IN_VSCODE.exec(text)?.[1]
  if (inPath !== undefined) return { json: decode(inPath) }
  const query = new URLSearchParams(text.slice(text.indexOf('?') + 1))
  const config = query.get('config')
  if (config === null) return undefined
  const json = config.trim().startsWith('{') ? config : Buffer.from(config.replaceAll(' ', '+'), 'base64').toString()
  return { name: query.get('name') ?? undefined, json }
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // the reader of JSON says where it is wrong
  }
}
