import { type CommandLine, readCommandLine } from '../command-line.ts'
import { nameOfCommand, nameOfUrl } from '../server-names.ts'
import type { FoundServer } from './paste.ts'

// Reads command lines: one that starts a server, or one of the commands with which clients add servers.

const VARIABLE = /^([A-Za-z_]\w*)=([\s\S]*)$/

/** Commands that add a server: the words before the name. */
const ADDING: readonly RegExp[] = [
  /^(claude|codex|gemini|amp|qwen|droid) mcp add$/,
  /^(dragoman) add$/,
  /^(copilot|cursor-agent) mcp add$/,
]
const ADDING_JSON = /^(claude mcp add-json|code(-insiders)? --add-mcp)$/

/** Flags of these commands: what they set; `skip` has a value without a meaning here. */
const FLAGS: Readonly<Record<string, 'env' | 'header' | 'type' | 'cwd' | 'url' | 'bearer' | 'skip'>> = {
  '-e': 'env',
  '--env': 'env',
  '-H': 'header',
  '--header': 'header',
  '-t': 'type',
  '--transport': 'type',
  '--type': 'type',
  '--cwd': 'cwd',
  '--url': 'url',
  '--bearer-token-env-var': 'bearer',
  '-s': 'skip',
  '--scope': 'skip',
  '--timeout': 'skip',
  '--description': 'skip',
  '--config': 'skip',
}

/** The server of a command line; a text says why there is none, undefined that it is no command line. */
export const readPastedCommand = (text: string): FoundServer | string | undefined => {
  const lines = text
    .replace(/[\\^`]\r?\n/g, ' ')
    .split('\n')
    .filter(line => line.trim() !== '' && !/^\s*(#|\/\/)/.test(line))
  const line = lines[0] === undefined ? undefined : readCommandLine(lines[0])
  if (!line) return undefined
  const found = readWords(line)
  if (typeof found !== 'object' || lines.length < 2) return found
  return { ...found, notes: [...found.notes, `Only the first of ${lines.length} lines was read.`] }
}

const readWords = ({ words, operator }: CommandLine): FoundServer | string | undefined => {
  if (operator !== undefined)
    return `No shell reads the command of a server, so "${operator}" has no meaning. Give the program and its arguments only; a folder goes into "cwd", a variable into "env".`
  const env: Record<string, string> = {}
  const rest = [...words]
  for (;;) {
    const [, name, value] = VARIABLE.exec(rest[0] ?? '') ?? []
    if (name === undefined || value === undefined) break
    env[name] = value
    rest.shift()
  }
  const [program] = rest
  if (program === undefined || !/^[\w.@~$/\\:-]/.test(program)) return undefined
  for (let count = 2; count <= 3; count++) {
    const head = rest.slice(0, count).join(' ')
    if (ADDING.some(pattern => pattern.test(head))) return readAdding(rest.slice(count), env)
    if (ADDING_JSON.test(head)) return readJson(rest.slice(count))
  }
  return server(undefined, rest, env)
}

/** `claude mcp add-json NAME '{…}'`, `code --add-mcp '{…}'` */
const readJson = (words: readonly string[]): FoundServer => {
  const [name] = words.filter(word => !word.startsWith('{') && !word.startsWith('-'))
  return { name, json: words.find(word => word.startsWith('{')) ?? '', notes: [] }
}

const server = (
  name: string | undefined,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): FoundServer => {
  const [command = '', ...args] = words
  const entry = { command, ...(args.length > 0 && { args }), ...(Object.keys(env).length > 0 && { env }) }
  return { name: name ?? nameOfCommand(words), entry, notes: [] }
}

/** `claude mcp add …`, `codex mcp add …`, `dragoman add …`: flags, a name, then a URL or a command. */
const readAdding = (words: readonly string[], given: Readonly<Record<string, string>>): FoundServer | string => {
  const env: Record<string, string> = { ...given }
  const headers: Record<string, string> = {}
  const texts: { type?: string; cwd?: string; url?: string } = {}
  const rest: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    if (word === '--') {
      rest.push(...words.slice(at + 1))
      break
    }
    const [flag = '', inline] = word.startsWith('--') ? splitOnce(word, '=') : [word]
    const isHeader = FLAGS[flag] === 'header'
    const kind = rest.length < 2 || isHeader ? FLAGS[flag] : undefined // later ones belong to the command
    if (kind === undefined) {
      if (rest.length >= 2 || !word.startsWith('-')) rest.push(word)
      continue
    }
    const value = inline ?? words[++at] ?? ''
    if (kind === 'env')
      Object.assign(env, Object.fromEntries([splitOnce(value, '=')].map(([key = '', text = '']) => [key, text])))
    else if (kind === 'header') {
      const [key = '', text = ''] = splitOnce(value, ':')
      headers[key.trim()] = text.trim()
    } else if (kind === 'bearer') headers.Authorization = `Bearer \${${value}}`
    else if (kind !== 'skip') texts[kind] = value
  }
  const [name, ...command] = rest
  if (name === undefined)
    return 'The command names no server: paste it with the name and the URL or command of the server.'
  const url = texts.url ?? (/^https?:\/\//.test(command[0] ?? '') ? command[0] : undefined)
  if (url !== undefined) {
    const type = texts.type === 'sse' ? { type: 'sse' } : {}
    return { name, entry: { url, ...type, ...(Object.keys(headers).length > 0 && { headers }) }, notes: [] }
  }
  if (command.length === 0) {
    if (!/^https?:\/\//.test(name)) return `The command has no URL and no program for "${name}".`
    return { name: nameOfUrl(new URL(name)), entry: { url: name }, notes: [] }
  }
  const found = server(name, command, env)
  return texts.cwd === undefined ? found : { ...found, entry: { ...found.entry, cwd: texts.cwd } }
}

const splitOnce = (text: string, at: string): [string, string?] => {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}
