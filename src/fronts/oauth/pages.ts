import type { ConnectedClientsView, ConsentView, MessageView, SignInView } from '../../protocol/sign-in.ts'
import { html } from '../http/html.ts'
import type { Page } from './page-layout.ts'

/** Asks the visitor to sign in: at an issuer, or by an API token. */
export const signInPage = ({ status, purpose, handle, byToken, issuers, error }: SignInView): Page => ({
  status,
  title: 'Sign in',
  forms: 'here',
  content: html`
${purpose === undefined ? undefined : html`<p>${purpose}</p>`}
${error === undefined ? undefined : html`<p class="error" role="alert">${error}</p>`}
${issuers.map(
  name =>
    html`<a class="button${byToken ? '' : ' main'}" href="/oauth/sign-in/${encodeURIComponent(name)}?handle=${handle}">Continue with ${name}</a>`,
)}
${byToken && issuers.length > 0 ? html`<div class="or">or</div>` : undefined}
${byToken ? tokenForm(handle) : undefined}`,
})

const tokenForm = (handle: string) => html`<form method="post" action="/oauth/sign-in">
<input type="hidden" name="handle" value="${handle}">
<label for="token">Token</label>
<input id="token" name="token" type="password" required autofocus autocomplete="off" spellcheck="false" placeholder="drg_…">
<button class="button main">Sign in</button>
</form>
<p class="soft">Paste a token of this gateway. The person who runs it creates one with <code>dragoman token create NAME</code>.</p>`

/** Asks a signed-in visitor whether a client may act for them. */
export const consentPage = (view: ConsentView): Page => {
  const { client, visitor, workspace, scopes, handle, signOutHandle } = view
  const name = client.name === undefined ? 'a client without a name' : `“${client.name}”`
  return {
    status: 200,
    title: `Allow ${name} to use this gateway?`,
    forms: 'anywhere',
    content: html`
<p>It will act for you, <strong>${visitor}</strong>. Allow it only if you have just started this yourself.</p>
<dl>
<div><dt>Client</dt><dd>${client.name ?? 'No name'}<br><span class="soft">${identityOf(view)}</span></dd></div>
<div><dt>Returns to</dt><dd>${placeOf(view.redirectUri)}</dd></div>
<div><dt>Workspace</dt><dd>${workspace ?? 'Every workspace that you may use'}</dd></div>
${scopes.length === 0 ? undefined : html`<div><dt>Permissions</dt><dd><ul>${scopes.map(scopeItem)}</ul></dd></div>`}
</dl>
<form method="post" action="/oauth/consent">
<input type="hidden" name="handle" value="${handle}">
<div class="row">
<button class="button" name="decision" value="deny">Deny</button>
<button class="button main" name="decision" value="allow">Allow</button>
</div>
</form>
${signOutForm(visitor, signOutHandle)}
<p class="soft"><a href="/oauth/clients">Clients that you have connected</a></p>`,
  }
}

const signOutForm = (visitor: string, handle: string) => html`<form method="post" action="/oauth/sign-out" class="soft">
<input type="hidden" name="handle" value="${handle}">
Signed in as ${visitor}. <button class="text">Sign in as another user</button>
</form>`

/** Shows a visitor the clients that act for them. */
export const connectedClientsPage = ({ visitor, clients, signOutHandle }: ConnectedClientsView): Page => ({
  status: 200,
  title: 'Connected clients',
  forms: 'here',
  content: html`
<p>${clients.length === 0 ? 'No client acts for you.' : 'These clients act for you until you disconnect them.'}</p>
<dl>${clients.map(connectedClient)}</dl>
${signOutForm(visitor, signOutHandle)}`,
})

const connectedClient = (
  client: ConnectedClientsView['clients'][number],
) => html`<div><dt>${placeOf(client.redirectUri)}</dt>
<dd><strong>${client.client}</strong><br>
<span class="soft">${client.workspace === undefined ? 'Every workspace' : `Workspace ${client.workspace}`}${client.scopes.length > 0 ? html` · ${client.scopes.join(' ')}` : undefined}<br>
Connected ${dayOf(client.since)}, last renewed ${dayOf(client.refreshedAt)}</span>
<form method="post" action="/oauth/disconnect">
<input type="hidden" name="handle" value="${client.handle}">
<button class="button">Disconnect</button>
</form></dd></div>`

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

const identityOf = ({ client: { domain, isListed } }: ConsentView): string => {
  if (domain !== undefined) return `Published by ${domain}`
  return isListed ? 'Known to the person who runs this gateway' : 'It chose this name itself: it is not verified'
}

const placeOf = (redirectUri: string): string => {
  const { protocol, host } = new URL(redirectUri)
  if (protocol === 'https:') return host
  return protocol === 'http:'
    ? `An application on this computer (${host})`
    : `The application that opens ${protocol} links`
}

const scopeItem = ({ name, tools }: ConsentView['scopes'][number]) =>
  html`<li><code>${name}</code> ${tools === undefined ? 'see and call tools' : `call tools like ${tools.join(', ')}`}</li>`

/** Says what happened; `link` leads on. */
export const messagePage = ({ status, title, text, link }: MessageView): Page => ({
  status,
  title,
  forms: 'here',
  content: html`<p>${text}</p>${
    link === undefined ? undefined : html`<p><a class="button" rel="noreferrer" href="${link.url}">${link.text}</a></p>`
  }`,
})

/** Leads a visitor who has signed in to the page that asked for it. A redirect would count as one of the form. */
export const continuePage = (to: string, visitor: string): Page => ({
  status: 200,
  title: 'Signed in',
  forms: 'here',
  refreshTo: to,
  content: html`<p>You are signed in as <strong>${visitor}</strong>.</p><p><a class="button main" href="${to}">Continue</a></p>`,
})
