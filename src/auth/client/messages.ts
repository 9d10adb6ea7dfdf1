import type { LoginFailed, LoginLink, LoginNeeded } from '../../protocol/oauth.ts'
import { codeText } from '../error-codes.ts'

// Texts continue the sentence `Server "x" …`. Nothing that an authorization server wrote is quoted: a model may read them.

const MINUTE = 60_000
const SHOWN = 200

/** A URL that another party wrote, with everything encoded that is not part of one. */
const urlText = (url: string): string => URL.parse(url)?.href.slice(0, SHOWN).replace(/\/$/, '') ?? 'an invalid URL'

/** Thrown where a login cannot go on. */
export class LoginProblem extends Error {
  readonly failure: LoginFailed

  constructor(failure: LoginFailed) {
    super(failure.text)
    this.failure = failure
  }
}

export const loginNeeded = (link: LoginLink): LoginNeeded => ({
  kind: 'login',
  text: `needs a login. Open ${link.url} in a browser within ${Math.round((link.expires - Date.now()) / MINUTE)} minutes, then call again.`,
  link,
})

const impossible = (text: string): LoginFailed => ({ kind: 'failed', reason: 'login_impossible', text })
const unavailable = (text: string): LoginFailed => ({ kind: 'failed', reason: 'login_unavailable', text })

/** Why there is no login, and what to do. */
export const LOGIN_FAILURES = {
  noPrincipal: (): LoginFailed => ({
    kind: 'failed',
    reason: 'no_credentials',
    text: 'needs a login, which belongs to a user: call it with a token of the gateway, or set "login": "gateway" under its "oauth".',
  }),
  noRegistration: (issuer: string, redirectUri: string) =>
    impossible(
      `needs a login, but ${urlText(issuer)} registers no clients: create one there with the redirect URI ${redirectUri} and put its "clientId" under "oauth".`,
    ),
  registrationRefused: (issuer: string, redirectUri: string, error: string) =>
    impossible(
      `needs a login, but ${urlText(issuer)} refused to register the gateway (${codeText(error)}): create a client there with the redirect URI ${redirectUri} and put its "clientId" under "oauth".`,
    ),
  noPkce: (issuer: string) =>
    impossible(
      `needs a login, but ${urlText(issuer)} does not say that it supports PKCE (S256); if it does, set "pkce": "assumed".`,
    ),
  noAuthorization: (issuer: string) =>
    impossible(`needs a login, but ${urlText(issuer)} names no authorization endpoint for browsers.`),
  foreignMetadata: (resource: string, url: string) =>
    impossible(`needs a login, but its metadata is for ${urlText(resource)}, not for ${url}: nothing was sent.`),
  foreignIssuer: (issuer: string, stated: string) =>
    impossible(`needs a login, but the metadata of ${urlText(issuer)} is for ${urlText(stated)}: nothing was sent.`),
  noMetadata: (issuer: string) =>
    impossible(`needs a login, but ${urlText(issuer)} has no metadata of an authorization server.`),
  invalidIssuer: () => impossible('needs a login, but the authorization server in its metadata is no URL.'),
  addressRefused: (reason: string) => impossible(`needs a login, but the gateway does not go there: ${reason}.`),
  unencrypted: (url: string) =>
    LOGIN_FAILURES.addressRefused(`${urlText(url.replace(/[?#].*/, ''))} is not encrypted (use https:)`),
  otherIssuer: (issuer: string, bound: string) =>
    impossible(
      `needs a login, but it names ${urlText(issuer)} now, and its "clientId" was used at ${urlText(bound)}: put the right one as "issuer" under "oauth".`,
    ),
  noOAuth: () => impossible('uses no OAuth: its "headers" or "credentials" are all that the gateway sends.'),
  noOffer: () =>
    impossible('offers no login by OAuth: if it needs credentials, put them under its "headers" or "credentials".'),
  noBrowser: () => impossible('needs no login: the gateway gets its tokens by itself.'),
  scopeLoop: (scope: string) => impossible(`keeps asking for ${scope.slice(0, SHOWN)}, which was already requested.`),
  tokenRefused: (issuer: string) =>
    impossible(
      `refuses a token that ${urlText(issuer)} has just issued: check its "oauth", and that both belong together.`,
    ),
  grantRefused: (issuer: string, error: string) =>
    impossible(
      `cannot be called: ${urlText(issuer)} refused to issue a token (${codeText(error)}); check its "oauth".`,
    ),
  noAssertion: (reason: string) =>
    unavailable(`cannot be called: its "assertionFile" cannot be read (${codeText(reason)}).`),
  unusable: (reason: string) => impossible(`needs a login, but ${reason}.`),
  issuerDown: (issuer: string) =>
    unavailable(`cannot be called: ${urlText(issuer)} did not answer; the login is kept.`),
  issuerDownBefore: (issuer: string) =>
    unavailable(`needs a login, but ${urlText(issuer)} did not answer; try again later.`),
  timedOut: () => unavailable('needs a login, but its authorization server takes too long to answer; try again later.'),
  internal: () => unavailable('cannot be called: its login failed inside the gateway; the log says why.'),
  storeDown: () => unavailable('cannot be called: the store with its login cannot be read now; try again later.'),
} as const
