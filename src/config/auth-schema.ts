import * as z from 'zod'
import { isSecretSafe } from '../std/host.ts'
import { flagSchema, listOf, mapOf, object, oneOfSchema, textList, textSchema } from './schema-parts.ts'

const SAFE = 'https://, or http:// on this machine'

const safeUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && isSecretSafe(url) && url.username === '' && url.password === '' && url.hash === ''
}

const urlOf = (example: string) =>
  textSchema.refine(safeUrl, { error: `expected a URL with ${SAFE}, like "${example}"` })

const oneOrMore = <T extends z.ZodType>(item: T, error: string) =>
  z
    .array(item, { error })
    .min(1, { error })
    .transform(list => list as [z.output<T>, ...z.output<T>[]])

const nonEmpty = (what: string) => textSchema.min(1, { error: `expected ${what}` })

/** A scope as RFC 6749 defines it. */
export const SCOPE = /^[!#-[\]-~]+$/
export const scopeList = listOf(textSchema.regex(SCOPE, { error: 'expected a scope, without spaces and quotes' }))

/** `listen.publicUrl`. */
export const publicUrlSchema = textSchema
  .refine(text => safeUrl(text) && /^[a-z]+:\/\/[^/?#]+\/?$/i.test(text), {
    error: `expected an origin without a path, with ${SAFE}, like "https://mcp.example.com"`,
  })
  .transform(text => new URL(text).origin)

const claimValue = z.union([z.string(), z.number(), z.boolean()], {
  error: 'expected a string, a number, true or false, or a list of them',
})

const grantSchema = object({
  where: mapOf(
    z
      .union([claimValue, z.array(claimValue).min(1)], {
        error: 'expected a string, a number, true or false, or a list of them',
      })
      .transform(value => [value].flat()),
  )
    .default({})
    .describe(
      'Claims that the token must have, by name, "a.b" for a member of a claim: each one is, or contains, the value, or one of a list. "email" must be verified.',
    ),
  workspaces: textList
    .min(1, { error: 'expected names of workspaces, or "*" for all' })
    .describe('The workspaces that these callers may use, "*" for all.'),
  policy: textSchema.optional().describe('The name of a policy that applies to these callers.'),
})

const endpointsSchema = object({
  authorization: urlOf('https://login.example.com/authorize').optional(),
  token: urlOf('https://login.example.com/token').optional(),
  userinfo: urlOf('https://login.example.com/userinfo').optional(),
  introspection: urlOf('https://login.example.com/introspect').optional(),
})

const issuerSchema = object({
  url: textSchema
    .refine(text => safeUrl(text) && !text.includes('?'), {
      error: `expected a URL with ${SAFE}, exactly as the "iss" of its tokens, like "https://login.example.com/realms/corp"`,
    })
    .describe('Exactly the "iss" of its tokens.'),
  jwks: urlOf('https://login.example.com/keys').optional().describe('Where its keys are; by discovery when absent.'),
  audience: z
    .union([nonEmpty('an audience'), listOf(nonEmpty('an audience')).min(1)], {
      error: 'expected an audience, or a list of them',
    })
    .transform(audience => [audience].flat())
    .optional()
    .describe(
      'Accepted values of "aud"; the URL of the workspace and the public URL when absent. A token for another program must not be accepted.',
    ),
  principal: nonEmpty('the name of a claim')
    .optional()
    .describe('The claim with the name of the caller; "<issuer>:<sub>" when absent. "email" must be verified.'),
  grants: oneOrMore(grantSchema, 'expected a list of at least one grant, like [{ "workspaces": ["*"] }]').describe(
    'What its callers may use: the first grant that fits decides; a caller whom none fits is rejected.',
  ),
  introspection: object({
    clientId: nonEmpty('a client id'),
    clientSecret: nonEmpty('a secret; write ${NAME} or ${file:PATH}'),
  })
    .optional()
    .describe('The client with which opaque tokens are checked at the issuer (RFC 7662).'),
  clientId: nonEmpty('a client id').optional().describe('A client of this gateway there, so that people can sign in.'),
  clientSecret: nonEmpty('a secret; write ${NAME} or ${file:PATH}').optional().describe('Its secret.'),
  endpoints: endpointsSchema.optional().describe('Endpoints of an issuer without discovery, like GitHub.'),
})

const scopeSchema = object({
  tools: textList
    .min(1, { error: 'expected patterns like "github/create_*"; leave "tools" out if any access needs the scope' })
    .optional()
    .describe('Tools as "<server>/<tool>", "*" standing for any characters: calling them needs the scope.'),
}).describe('What needs the scope: calls of "tools", or any access when absent.')

const SCRIPT_SCHEME = /^(javascript|data|vbscript|file|blob|about):$/

const redirectUri = textSchema.refine(
  text => {
    const url = URL.parse(text)
    if (url === null || text.includes('#')) return false
    return /^https?:$/.test(url.protocol) ? isSecretSafe(url) : !SCRIPT_SCHEME.test(url.protocol)
  },
  { error: `expected a redirect URI with ${SAFE}, or with the scheme of an application, without "#"` },
)

const authServerSchema = object({
  signIn: oneOrMore(textSchema, 'expected a list with "token" or names of issuers')
    .default(['token'])
    .describe('How people sign in: "token" (they paste an API token), or issuers that have a "clientId".'),
  registration: oneOfSchema(['open', 'listed'])
    .default('open')
    .describe('Which clients can connect: any that registers itself ("open"), or only those of "clients".'),
  clients: mapOf(
    object({
      name: nonEmpty('a name').optional().describe('Shown when the user is asked for consent.'),
      redirectUris: oneOrMore(redirectUri, 'expected a list of at least one redirect URI').describe(
        'Where it may lead the browser back to.',
      ),
    }),
  )
    .default({})
    .describe('Clients that do not have to register, by client id.'),
}).describe(
  'The embedded authorization server, for people without an identity provider, and for clients that register.',
)

export const authSchema = object({
  required: flagSchema
    .optional()
    .describe('Whether callers need a token; when absent, from the first API token, issuer or "server" on.'),
  issuers: mapOf(issuerSchema).optional().describe('Authorization servers whose tokens are accepted, by name.'),
  scopes: mapOf(scopeSchema).optional().describe('Scopes of OAuth tokens, and what needs them.'),
  server: authServerSchema.optional(),
}).describe('How callers authenticate.')

export type AuthEntry = z.output<typeof authSchema>
