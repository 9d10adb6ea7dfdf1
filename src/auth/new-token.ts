import { suggest } from '../config/problems.ts'
import { WORKSPACE_NAME } from '../config/workspace-schema.ts'
import { createSecret, createTokenId, EVERY_WORKSPACE, hashSecret, type Token } from './token.ts'

/** What a new token shall be; what is missing has its default. */
export interface TokenWish {
  readonly name: string
  readonly workspaces?: readonly string[] | undefined // default: every workspace
  readonly policy?: string | undefined // default: none
  readonly expires?: string | undefined // a lifetime like 30d; default: it never expires
  readonly principal?: string | undefined // default: its id
  readonly admin?: boolean | undefined // its holder may change the gateway; default: false
}

/** The names that a new token may use; undefined: they are not known here, and not checked. */
export interface TokenNames {
  readonly workspaces?: readonly string[] | undefined
  readonly policies?: { readonly names: readonly string[]; readonly file: string } | undefined
  readonly tokens?: readonly string[] | undefined // names of tokens, which must differ
}

/** Says which part of a wish is wrong, and why. */
export class TokenWishError extends Error {
  readonly field: keyof TokenWish

  constructor(field: keyof TokenWish, message: string) {
    super(message)
    this.name = 'TokenWishError'
    this.field = field
  }
}

/** Makes a token and its secret, which is stored nowhere; throws a TokenWishError. */
export const createToken = (
  wish: TokenWish,
  known: TokenNames = {},
  now = Date.now(),
): { readonly token: Token; readonly secret: string } => {
  const secret = createSecret()
  const id = createTokenId()
  const policy = wish.policy === undefined ? undefined : checkPolicy(wish.policy, known.policies)
  const token: Token = {
    id,
    name: checkName(wish.name, known.tokens),
    hash: hashSecret(secret),
    principal: printable('principal', wish.principal ?? id),
    workspaces: checkWorkspaces(wish.workspaces ?? [], known.workspaces),
    ...(policy === undefined ? {} : { policy }),
    ...(checkAdmin(wish) && { admin: true }),
    created: new Date(now).toISOString(),
    expires: wish.expires === undefined ? undefined : endOf(wish.expires, now),
  }
  return { token, secret }
}

const LONGEST_NAME = 100

const printable = (field: 'name' | 'policy' | 'principal', text: string): string => {
  if (text.trim() !== '' && text.length <= LONGEST_NAME && !/\p{C}/u.test(text)) return text
  throw new TokenWishError(field, `expected 1 to ${LONGEST_NAME} printable characters`)
}

const checkName = (name: string, others: readonly string[] = []): string => {
  if (!others.includes(printable('name', name))) return name
  throw new TokenWishError('name', `there is a token ${JSON.stringify(name)} already; choose another name`)
}

const checkWorkspaces = (names: readonly string[], known: readonly string[] | undefined): readonly string[] => {
  const named = names.filter(name => name !== EVERY_WORKSPACE)
  const invalid = named.find(name => !WORKSPACE_NAME.test(name))
  if (invalid !== undefined)
    throw new TokenWishError(
      'workspaces',
      `${JSON.stringify(invalid.slice(0, LONGEST_NAME))} is not a valid workspace name`,
    )
  const missing = known && named.find(name => !known.includes(name))
  if (known && missing !== undefined)
    throw new TokenWishError(
      'workspaces',
      `the gateway has no workspace ${JSON.stringify(missing)}; ${suggest(missing, known)}`,
    )
  return names.length === 0 || names.includes(EVERY_WORKSPACE) ? [EVERY_WORKSPACE] : [...new Set(named)]
}

const checkPolicy = (given: string, known: TokenNames['policies']): string => {
  const policy = printable('policy', given)
  if (!known || known.names.includes(policy)) return policy
  const hint = suggest(policy, known.names, 'it has no "policies"')
  throw new TokenWishError('policy', `${known.file} defines no policy ${JSON.stringify(policy)}; ${hint}`)
}

/** A holder who may change the gateway could lift the limits of the token. */
const checkAdmin = ({ admin = false, workspaces = [], policy }: TokenWish): boolean => {
  if (!admin || (policy === undefined && workspaces.every(name => name === EVERY_WORKSPACE))) return admin
  throw new TokenWishError(
    'admin',
    'a token that may change the gateway cannot be limited to workspaces or by a policy; leave one of them out',
  )
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 }

const endOf = (lifetime: string, now: number): string => {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhdwy])$/.exec(lifetime) ?? []
  const end = new Date(now + Number(count) * (UNITS[unit] ?? Number.NaN) * 1000)
  if (count !== '' && Number(count) > 0 && !Number.isNaN(end.getTime()) && end.getUTCFullYear() < 10_000)
    return end.toISOString()
  throw new TokenWishError('expires', 'expected a time like 45m, 12h, 30d, 6w or 1y')
}
