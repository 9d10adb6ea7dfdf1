import type { ClientList } from '../../../admin/api/clients.ts'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import { hrefTo } from '../../router.ts'
import { isOwner } from '../../session.ts'
import type { OtherClient } from './other-clients.ts'
import { ownerTitle, PaneSection } from './pane-parts.tsx'
import type { SnippetContext } from './snippets.ts'

export interface OtherDetailProps {
  readonly client: OtherClient
  readonly list: ClientList
  readonly base: string
  readonly secret: string | undefined
  readonly tool: string | undefined // of the workspace
  readonly onToken: () => void
}

const CONFIG = `{
  "listen": { "publicUrl": "https://mcp.example.com" },
  "auth": { "server": { "signIn": ["token"] } }
}`

/** A client that is connected by hand: texts to copy, and for those in the cloud what the gateway needs. */
export const OtherDetail = ({ client, list, base, secret, tool, onToken }: OtherDetailProps) => {
  const { needsToken, placeholder, workspace, stdio } = list
  const isCloud = client.steps !== undefined
  const context: SnippetContext = {
    base: isCloud ? (list.publicUrl ?? base) : base,
    workspace,
    token: needsToken ? (secret ?? placeholder) : undefined,
    stdio,
    tool,
  }
  const isMissing = needsToken && client.usesToken && secret === undefined
  return (
    <div class="connect-pane">
      <p>{client.about}</p>
      {client.id === 'stdio' && !list.isHere && (
        <Callout kind="warn">
          It works on <b>{list.machine}</b> only: the client starts a command there.
        </Callout>
      )}
      {isCloud && <CloudNeeds list={list} />}
      {isMissing && (
        <Callout kind="warn">
          <p>
            The gateway needs a token: it replaces <code>{placeholder}</code> below.
          </p>
          <Button icon="plus" disabled={!isOwner.value} title={ownerTitle()} onClick={onToken}>
            Create a token…
          </Button>
        </Callout>
      )}
      {secret !== undefined && client.usesToken && (
        <Callout>The new token is filled in. It is shown until you leave this page.</Callout>
      )}
      {client.snippets(context).map(({ title, text, note }) => (
        <PaneSection key={title} title={title}>
          <JsonText text={text.trimEnd()} label={title} isPretty={false} isColoured={text.startsWith('{')} />
          {note !== undefined && <p class="quiet">{note}</p>}
        </PaneSection>
      ))}
      {client.steps && (
        <PaneSection title="Steps">
          <ol class="connect-steps">
            {client.steps.map(step => (
              <li key={step}>{step}</li>
            ))}
          </ol>
        </PaneSection>
      )}
    </div>
  )
}

/** What the gateway needs so that a client in the cloud can reach it and log in. */
const CloudNeeds = ({ list: { publicUrl, hasAuthServer, needsToken } }: { readonly list: ClientList }) => {
  const isPublic = publicUrl?.startsWith('https://') === true
  if (isPublic && hasAuthServer)
    return (
      <Callout>
        The gateway has a public address and an authorization server. People sign in with a token of their own:{' '}
        <a href={hrefTo('connect', ['tokens'])}>Tokens</a>.
      </Callout>
    )
  return (
    <Callout kind="warn">
      <p>Before this client can connect:</p>
      <ul>
        {!isPublic && <li>Put a proxy with TLS before the gateway, and set “publicUrl” to its https address.</li>}
        {!hasAuthServer && <li>Turn on the authorization server: “auth.server”. It takes effect after a restart.</li>}
        {!needsToken && <li>Create a token for each person who signs in.</li>}
      </ul>
      <JsonText text={CONFIG} label="the settings" isPretty={false} />
      <a href={hrefTo('configuration')}>Open the configuration</a>
    </Callout>
  )
}
