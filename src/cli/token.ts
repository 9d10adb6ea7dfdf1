import { readLastUsed } from '../auth/last-used.ts'
import { createToken, type TokenNames, type TokenWish, TokenWishError } from '../auth/new-token.ts'
import { EVERY_WORKSPACE, isExpired, type Token } from '../auth/token.ts'
import type { TokenPlace } from '../auth/token-place.ts'
import { loadConfig } from '../config/load.ts'
import type { Run } from './command.ts'
import { configForTokens, openTokenPlace } from './token-place.ts'
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
  admin: {
    help: 'its holder may also change the gateway: configuration, tokens, servers (default: only look at it, and use its servers)',
  },
  principal: { value: 'NAME', help: 'whom it identifies; tokens of one principal share sessions (default: its id)' },
}

const create: TokenAction['run'] = async (name = '', flags, place, data) => {
  const { warning, policies } = await policiesFor(flags, data)
  const { token, secret } = wishedToken(
    {
      name,
      workspaces: textsOf(flags, 'workspace'),
      policy: textOf(flags, 'policy'),
      expires: textOf(flags, 'expires'),
      principal: textOf(flags, 'principal'),
      admin: flags.admin === true,
    },
    { policies },
  )
  const isFirst = (await place.read()) === undefined
  await place.change(tokens => [...tokens, token])
  if (flags.json) return printJson({ ...withoutHash(token), token: secret })
  return print(
    `Created token ${token.id} ${JSON.stringify(token.name)}: ${scopeText(token)}, ${policyText(token)}${adminText(token)}${expiryText(token)}. Copy it now: it will not be shown again.\n\n` +
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
    token.admin ? 'yes' : '-',
    day(token.created),
    token.expires === undefined ? 'never' : `${day(token.expires)}${isExpired(token, now) ? ' (expired)' : ''}`,
    lastUsed[token.id]?.slice(0, 16).replace('T', ' ') ?? 'never',
  ])
  return print(
    table([['ID', 'NAME', 'PRINCIPAL', 'WORKSPACES', 'POLICY', 'ADMIN', 'CREATED', 'EXPIRES', 'LAST USED'], ...rows]),
  )
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

/** The flags of what a wish consists of. */
const WISH_FLAGS: Readonly<Record<keyof TokenWish, string>> = {
  name: 'the name',
  workspaces: '--workspace',
  policy: '--policy',
  expires: '--expires',
  principal: '--principal',
  admin: '--admin',
}

const wishedToken = (wish: TokenWish, known: TokenNames): ReturnType<typeof createToken> => {
  try {
    return createToken(wish, known)
  } catch (error) {
    throw error instanceof TokenWishError ? new UsageError(`${WISH_FLAGS[error.field]}: ${error.message}`) : error
  }
}

/** The policies that a new token can have: those of the configuration of the daemon, or of the one that is found. */
const policiesFor = async (
  flags: FlagValues,
  data: string,
): Promise<Pick<TokenNames, 'policies'> & { readonly warning?: string }> => {
  const policy = textOf(flags, 'policy')
  if (policy === undefined) return {}
  const file = await configForTokens(textOf(flags, 'config'), data)
  if (file === undefined)
    return {
      warning: `No configuration file defines the policy ${JSON.stringify(policy)}: until one does, the token sees nothing.`,
    }
  const { policies = new Map() } = await loadConfig({ file, env: process.env })
  return { policies: { file, names: [...policies.keys()] } }
}

const withoutHash = ({ hash: _hash, ...token }: Token): object => ({
  ...token,
  policy: token.policy ?? null,
  admin: token.admin ?? false,
  expires: token.expires ?? null,
})

const scopeText = ({ workspaces }: Token): string =>
  workspaces.includes(EVERY_WORKSPACE)
    ? 'every workspace'
    : `workspace${workspaces.length > 1 ? 's' : ''} ${workspaces.join(', ')}`

const policyText = ({ policy }: Token): string => (policy === undefined ? '' : `policy ${JSON.stringify(policy)}, `)

const adminText = ({ admin }: Token): string => (admin ? 'may change the gateway, ' : '')

const expiryText = ({ expires }: Token): string => (expires === undefined ? 'never expires' : `until ${expires}`)

const day = (moment: string): string => moment.slice(0, 10)
