import type { LoginPage } from '../../protocol/oauth.ts'

const refused = (status: number, text: string, quoted?: string): LoginPage => ({
  kind: 'refused',
  status,
  text,
  quoted,
})

/** What a browser is shown during a login. Texts are plain; the page escapes them. */
export const LOGIN_PAGES = {
  done: (server: string): LoginPage => ({
    kind: 'done',
    server,
    text: `You are logged in to "${server}". You can close this page.`,
  }),
  unknown: () =>
    refused(404, 'This login is not known: it has expired, or was used already. Call the server again for a new link.'),
  broken: () => refused(503, 'The gateway could not read or store this login. Open the link again in a moment.'),
  otherUser: (name: string) => refused(403, `This link belongs to another user; you are signed in as ${name}.`),
  otherBrowser: () =>
    refused(403, 'This login was started in another browser: nothing was stored. Open the link again in this one.'),
  foreign: (issuer: string) =>
    refused(400, `This answer does not come from ${issuer}, which was asked: it was not used. Open the link again.`),
  incomplete: (issuer: string) => refused(400, `${issuer} answered neither with a code nor with an error.`),
  denied: (issuer: string, error: string, quoted: string | undefined) =>
    refused(400, `${issuer} did not grant access (${error}). Open the link again to retry.`, quoted),
  unavailable: (issuer: string) => refused(502, `${issuer} did not answer. Open the link again in a moment.`),
  noServer: (server: string) =>
    refused(404, `The server "${server}" is no longer configured as it was when this login began.`),
} as const
