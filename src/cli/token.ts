import { readLastUsed } from '../auth/last-used.ts'
import { createSecret, createTokenId, EVERY_WORKSPACE, hashSecret, isExpired, type Token } from '../auth/token.ts'
import { loadConfig } from '../config/load.ts'
import { suggest } from '../config/problems.ts'
import { WORKSPACE_NAME } from '../config/workspace-schema.ts'
import type { Run } from './command.ts'
import { configForTokens, openTokenPlace, type TokenPlace } from './token-place.ts'
import {
  actionHelp,
  commandHelp,
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  findAction,
  JSON_FLAG,
  print,
  printError,
  printJson,
  readLine,
  table,
  textOf,
  textsOf,
  UsageError,
} from './usage.ts'

interface TokenAction {
  readonly usage: string
  readonly summary: string
  readonly flags: Flags
  readonly run: (word: string | undefined, flags: FlagValues, place: TokenPlace, data: string) => Promise<number>
}

const COMMON: Flags = {
  config: {
    value: 'FILE',
    help: 'the configuration whose "store" keeps the tokens and which defines the policies (default: that of the daemon, or the one that is found)',
  },
  ...DATA_FLAG,
  ...JSON_FLAG,
}

const CREATE_FLAGS: Flags = {
  workspace: {
    value: 'NAME',
    many: true,
    help: 'a workspace it admits to, may be repeated (default: every workspace)',
  },
  policy: {
    value: 'NAME',
    help: 'the policy of the configuration that limits what it may see and use (default: none)',
  },
  expires: { value: 'TIME', help: 'how long it is valid, like 12h, 30d or 1y (default: it never expires)' },
  principal: { value: 'NAME', help: 'whom it identifies; tokens of one principal share sessions (default: its id)' },
}

const create: TokenAction['run'] = async (name = '', flags, place, data) => {
  const secret = createSecret()
  const id = createTokenId()
  const now = Date.now()
  const { policy, warning } = await policyOf(flags, data)
  const token: Token = {
    id,
    name: printableName('the name', name),
    hash: hashSecret(secret),
    principal: printableName('--principal', textOf(flags, 'principal') ?? id),
    workspaces: workspacesOf(flags),
    ...(policy === undefined ? {} : { policy }),
    created: new Date(now).toISOString(),
    expires: expiryOf(flags, now),
  }
  const isFirst = (await place.read()) === undefined
  await place.change(tokens => [...tokens, token])
  if (flags.json) return printJson({ ...withoutHash(token), token: secret })
  return print(
    `Created token ${id} ${JSON.stringify(token.name)}: ${scopeText(token)}, ${policyText(token)}${expiryText(token)}. Copy it now: it will not be shown again.\n\n` +
      `  ${secret}\n\n` +
      `Clients send it as "Authorization: Bearer <token>". Its hash is stored in ${place.name}.\n` +
      (isFirst ? 'From now on every caller needs a token.\n' : '') +
      (warning === undefined ? '' : `${warning}\n`),
  )
}

const list: TokenAction['run'] = async (_word, flags, place, data) => {
  const tokens = (await place.read()) ?? []
  const lastUsed = await readLastUsed(data)
  if (flags.json)
    return printJson(tokens.map(token => ({ ...withoutHash(token), lastUsed: lastUsed[token.id] ?? null })))
  if (tokens.length === 0) return print(`There are no tokens in ${place.name}.\n`)
  const now = Date.now()
  const rows = tokens.map(token => [
    token.id,
    token.name,
    token.principal,
    token.workspaces.join(','),
    token.policy ?? '-',
    day(token.created),
    token.expires === undefined ? 'never' : `${day(token.expires)}${isExpired(token, now) ? ' (expired)' : ''}`,
    lastUsed[token.id]?.slice(0, 16).replace('T', ' ') ?? 'never',
  ])
  return print(table([['ID', 'NAME', 'PRINCIPAL', 'WORKSPACES', 'POLICY', 'CREATED', 'EXPIRES', 'LAST USED'], ...rows]))
}

const revoke: TokenAction['run'] = async (word = '', flags, place) => {
  const tokens = (await place.read()) ?? []
  const named = tokens.filter(({ name }) => name === word)
  const token = tokens.find(({ id }) => id === word) ?? (named.length === 1 ? named[0] : undefined)
  if (!token) return printError(revokeError(word, named))
  await place.change(tokens => tokens.filter(({ id }) => id !== token.id))
  if (flags.json) return printJson(withoutHash(token))
  return print(`Revoked token ${token.id} ${JSON.stringify(token.name)}; it is rejected from now on.\n`)
}

const revokeError = (word: string, named: readonly Token[]): string =>
  named.length > 1
    ? `${named.length} tokens are named ${JSON.stringify(word)}; name one by its id: ${named.map(({ id }) => id).join(', ')}`
    : `there is no token with the id or name ${JSON.stringify(word)}; "dragoman token list" shows them`

const ACTIONS: Readonly<Record<string, TokenAction>> = {
  create: { usage: 'create NAME', summary: 'create a token and show it once', flags: CREATE_FLAGS, run: create },
  list: { usage: 'list', summary: 'list all tokens, without their secrets', flags: {}, run: list },
  revoke: {
    usage: 'revoke ID|NAME',
    summary: 'reject a token from now on, and end its sessions',
    flags: {},
    run: revoke,
  },
}

const ABOUT = 'Callers authenticate with a token. A running gateway applies every change at once.'

/** Creates, lists and revokes tokens; a running gateway watches their file. */
export const run: Run = async args => {
  const [name, ...rest] = args
  if (name === undefined || name === '--help' || name === '-h')
    return print(commandHelp('token', ABOUT, ACTIONS, COMMON))
  const action = findAction(ACTIONS, name)
  const takesWord = action.usage !== name
  const { flags, words } = readLine(rest, { ...action.flags, ...COMMON }, takesWord ? 1 : 0)
  if (flags.help) return print(actionHelp('token', action, COMMON))
  if (takesWord && words.length === 0) throw new UsageError(`expected dragoman token ${action.usage}`)
  const data = dataDirectoryOf(flags)
  const place = await openTokenPlace(textOf(flags, 'config'), data)
  return action.run(words[0], flags, place, data).finally(() => place.close())
}

const LONGEST_NAME = 100

const printableName = (what: string, text: string): string => {
  if (text.trim() !== '' && text.length <= LONGEST_NAME && !/\p{C}/u.test(text)) return text
  throw new UsageError(`${what}: expected 1 to ${LONGEST_NAME} printable characters`)
}

const workspacesOf = (flags: FlagValues): readonly string[] => {
  const names = textsOf(flags, 'workspace')
  const invalid = names.find(name => name !== EVERY_WORKSPACE && !WORKSPACE_NAME.test(name))
  if (invalid !== undefined)
    throw new UsageError(`--workspace: ${JSON.stringify(invalid)} is not a valid workspace name`)
  return names.length === 0 || names.includes(EVERY_WORKSPACE) ? [EVERY_WORKSPACE] : [...new Set(names)]
}

/** The policy of a new token. The configuration of the daemon, or the one that is found, must define it. */
const policyOf = async (flags: FlagValues, data: string): Promise<{ policy?: string; warning?: string }> => {
  const given = textOf(flags, 'policy')
  if (given === undefined) return {}
  const policy = printableName('--policy', given)
  const file = await configForTokens(textOf(flags, 'config'), data)
  if (file === undefined)
    return {
      policy,
      warning: `No configuration file defines the policy ${JSON.stringify(policy)}: until one does, the token sees nothing.`,
    }
  const { policies = new Map() } = await loadConfig({ file, env: process.env })
  if (policies.has(policy)) return { policy }
  const hint = suggest(policy, policies.keys(), 'it has no "policies"')
  throw new UsageError(`--policy: ${file} defines no policy ${JSON.stringify(policy)}; ${hint}`)
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

const withoutHash = ({ hash: _hash, ...token }: Token): object => ({
  ...token,
  policy: token.policy ?? null,
  expires: token.expires ?? null,
})

const scopeText = ({ workspaces }: Token): string =>
  workspaces.includes(EVERY_WORKSPACE)
    ? 'every workspace'
    : `workspace${workspaces.length > 1 ? 's' : ''} ${workspaces.join(', ')}`

const policyText = ({ policy }: Token): string => (policy === undefined ? '' : `policy ${JSON.stringify(policy)}, `)

const expiryText = ({ expires }: Token): string => (expires === undefined ? 'never expires' : `until ${expires}`)

const day = (moment: string): string => moment.slice(0, 10)
