import { readLastUsed } from '../auth/last-used.ts'
import { createSecret, createTokenId, EVERY_WORKSPACE, hashSecret, isExpired, type Token } from '../auth/token.ts'
import { changeTokens, readTokens, tokenFilePath } from '../auth/token-file.ts'
import { dataDirectory, ensureDataDirectory } from '../config/data-dir.ts'
import { nearest } from '../config/problems.ts'
import { WORKSPACE_NAME } from '../config/workspace-schema.ts'
import { actionHelp, commandHelp } from './action-help.ts'
import type { Run } from './command.ts'
import { table } from './table.ts'
import { type Flags, type FlagValues, readLine, textOf, textsOf, UsageError } from './usage.ts'

interface Action {
  readonly usage: string
  readonly summary: string
  readonly flags: Flags
  readonly run: (word: string | undefined, flags: FlagValues, data: string) => Promise<number>
}

const COMMON: Flags = {
  data: { value: 'DIR', help: 'where the tokens rest (DRAGOMAN_DATA, or the place of the platform)' },
  json: { help: 'print JSON' },
}

const CREATE_FLAGS: Flags = {
  workspace: { value: 'NAME', many: true, help: 'a workspace it opens, may be given again (every workspace)' },
  policy: { value: 'NAME', help: 'the policy of the configuration that bounds what it may see and use (none)' },
  expires: { value: 'TIME', help: 'how long it is good, like 12h, 30d or 1y (without an end)' },
  principal: { value: 'NAME', help: 'whom it stands for; tokens of one principal share sessions (its id)' },
}

const create: Action['run'] = async (name = '', flags, data) => {
  const secret = createSecret()
  const id = createTokenId()
  const now = Date.now()
  const token: Token = {
    id,
    name: plain('the name', name),
    hash: hashSecret(secret),
    principal: plain('--principal', textOf(flags, 'principal') ?? id),
    workspaces: workspacesOf(flags),
    ...policyOf(flags),
    created: new Date(now).toISOString(),
    expires: expiryOf(flags, now),
  }
  await ensureDataDirectory(data)
  const file = tokenFilePath(data)
  const isFirst = (await readTokens(file)) === undefined
  await changeTokens(file, tokens => [...tokens, token])
  if (flags.json) return printJson({ ...shown(token), token: secret })
  return print(
    `Created token ${id} ${JSON.stringify(token.name)}: ${scopeText(token)}, ${boundText(token)}${endText(token)}. It is shown only now:\n\n` +
      `  ${secret}\n\n` +
      `Clients send it as "Authorization: Bearer <token>". What is kept of it is in ${file}.\n` +
      (isFirst ? 'From now on the gateway asks every caller for a token.\n' : ''),
  )
}

const list: Action['run'] = async (_word, flags, data) => {
  const tokens = (await readTokens(tokenFilePath(data))) ?? []
  const used = await readLastUsed(data)
  if (flags.json) return printJson(tokens.map(token => ({ ...shown(token), lastUsed: used[token.id] ?? null })))
  if (tokens.length === 0) return print(`There are no tokens in ${data}.\n`)
  const now = Date.now()
  const rows = tokens.map(token => [
    token.id,
    token.name,
    token.principal,
    token.workspaces.join(','),
    token.policy ?? '-',
    day(token.created),
    token.expires === undefined ? 'never' : `${day(token.expires)}${isExpired(token, now) ? ' (expired)' : ''}`,
    used[token.id]?.slice(0, 16).replace('T', ' ') ?? 'never',
  ])
  return print(table([['ID', 'NAME', 'PRINCIPAL', 'WORKSPACES', 'POLICY', 'CREATED', 'EXPIRES', 'LAST USED'], ...rows]))
}

const revoke: Action['run'] = async (id = '', flags, data) => {
  const file = tokenFilePath(data)
  const token = (await readTokens(file))?.find(token => token.id === id)
  if (!token) {
    process.stderr.write(`dragoman: there is no token ${JSON.stringify(id)}; "dragoman token list" shows their ids\n`)
    return 1
  }
  await changeTokens(file, tokens => tokens.filter(token => token.id !== id))
  if (flags.json) return printJson(shown(token))
  return print(`Revoked token ${id} ${JSON.stringify(token.name)}; it opens nothing any more.\n`)
}

const ACTIONS: Readonly<Record<string, Action>> = {
  create: { usage: 'create NAME', summary: 'make a token and show it once', flags: CREATE_FLAGS, run: create },
  list: { usage: 'list', summary: 'show what is kept of every token', flags: {}, run: list },
  revoke: { usage: 'revoke ID', summary: 'make a token worthless at once', flags: {}, run: revoke },
}

const ABOUT = 'Callers come in with a token; a running gateway knows of every change at once.'

/** Creates, lists and revokes tokens; a running gateway takes notice at once. */
export const run: Run = async args => {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h')
    return print(commandHelp('token', ABOUT, ACTIONS, COMMON))
  const action = actionOf(name)
  const { flags, words } = readLine(rest, { ...action.flags, ...COMMON })
  if (flags.help) return print(actionHelp('token', action, COMMON))
  const takesWord = action.usage !== name
  if (takesWord && words.length === 0) throw new UsageError(`expected dragoman token ${action.usage}`)
  const [extra] = words.slice(takesWord ? 1 : 0)
  if (extra !== undefined) throw new UsageError(`Unexpected argument '${extra}'`)
  return action.run(words[0], flags, dataDirectory({ flag: textOf(flags, 'data'), env: process.env }))
}

const actionOf = (name: string): Action => {
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (action) return action
  const meant = nearest(name, Object.keys(ACTIONS))
  const hint = meant ? `did you mean "${meant}"?` : `expected ${Object.keys(ACTIONS).join(', ')}`
  throw new UsageError(`${JSON.stringify(name)} is not an action; ${hint}`)
}

const LONGEST_NAME = 100

const plain = (what: string, text: string): string => {
  if (text.trim() !== '' && text.length <= LONGEST_NAME && !/\p{C}/u.test(text)) return text
  throw new UsageError(`${what}: expected 1 to ${LONGEST_NAME} printable characters`)
}

const workspacesOf = (flags: FlagValues): readonly string[] => {
  const names = textsOf(flags, 'workspace')
  const wrong = names.find(name => name !== EVERY_WORKSPACE && !WORKSPACE_NAME.test(name))
  if (wrong !== undefined) throw new UsageError(`--workspace: ${JSON.stringify(wrong)} is no name of a workspace`)
  return names.length === 0 || names.includes(EVERY_WORKSPACE) ? [EVERY_WORKSPACE] : [...new Set(names)]
}

const policyOf = (flags: FlagValues): { policy?: string } => {
  const policy = textOf(flags, 'policy')
  return policy === undefined ? {} : { policy: plain('--policy', policy) }
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 }

const expiryOf = (flags: FlagValues, now: number): string | undefined => {
  const text = textOf(flags, 'expires')
  if (text === undefined) return undefined
  const [, count = '', unit = ''] = /^(\d{1,9})([smhdwy])$/.exec(text) ?? []
  const end = new Date(now + Number(count) * (UNITS[unit] ?? Number.NaN) * 1000)
  if (count !== '' && Number(count) > 0 && !Number.isNaN(end.getTime()) && end.getUTCFullYear() < 10_000)
    return end.toISOString()
  throw new UsageError('--expires: expected a time like 45m, 12h, 30d, 6w or 1y')
}

/** What may be shown of a token. */
const shown = ({ hash: _hash, ...token }: Token): object => ({
  ...token,
  policy: token.policy ?? null,
  expires: token.expires ?? null,
})

const scopeText = ({ workspaces }: Token): string =>
  workspaces.includes(EVERY_WORKSPACE)
    ? 'every workspace'
    : `workspace${workspaces.length > 1 ? 's' : ''} ${workspaces.join(', ')}`

const boundText = ({ policy }: Token): string =>
  policy === undefined ? '' : `within the policy ${JSON.stringify(policy)}, `

const endText = ({ expires }: Token): string => (expires === undefined ? 'without an end' : `until ${expires}`)

const day = (moment: string): string => moment.slice(0, 10)

const printJson = (value: unknown): number => print(`${JSON.stringify(value, undefined, 2)}\n`)

const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}
