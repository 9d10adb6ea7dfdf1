import { useState } from 'preact/hooks'
import type { ClientInfo, ClientList, ClientTransport } from '../../../admin/api/clients.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import { Select } from '../../parts/select.tsx'
import { isOwner } from '../../session.ts'
import { fillSnippet, verdictOf } from './client-rows.ts'
import { LinkDialog } from './link-dialog.tsx'
import { Facts, NEEDS_OWNER, ownerTitle, PaneSection, PathText } from './pane-parts.tsx'

export interface ClientDetailProps {
  readonly client: ClientInfo
  readonly list: ClientList
  readonly base: string // the address of the gateway for this reader
  readonly secret: string | undefined // of a token that was created for this client just now
  readonly onToken: () => void
  readonly onChanged: () => void
}

const TRANSPORTS: Readonly<Record<ClientTransport, string>> = { http: 'HTTP', stdio: 'stdio' }

type DialogKind =
  | { readonly action: 'link' }
  | { readonly action: 'unlink'; readonly name: string; readonly workspace: string }

/** A client with a file: what belongs into it, what is in it, and buttons that change it. */
export const ClientDetail = ({ client, list, base, secret, onToken, onChanged }: ClientDetailProps) => {
  const { workspace, needsToken } = list
  const [chosen, setChosen] = useState<ClientTransport | undefined>()
  const [dialog, setDialog] = useState<DialogKind | undefined>()
  const transport = chosen ?? (secret !== undefined && client.snippets.http ? 'http' : client.transport)
  const text = client.snippets[transport] ?? ''
  const isMissingToken = needsToken && transport === 'http' && secret === undefined
  const problem = client.state?.problem
  const whyNot = ownerTitle() ?? problem ?? (isMissingToken ? 'Create a token first, or choose stdio' : undefined)
  const options = (Object.keys(client.snippets) as ClientTransport[]).map(value => ({
    value,
    label: TRANSPORTS[value],
  }))

  return (
    <div class="connect-pane">
      {problem !== undefined && <Callout kind="error">{problem}</Callout>}
      <FileFacts client={client} list={list} />
      <ClientLinks client={client} onUnlink={(name, of) => setDialog({ action: 'unlink', name, workspace: of })} />
      <PaneSection
        title={`Connect to the workspace ${workspace}`}
        actions={<Select label="Transport" value={transport} options={options} onChange={setChosen} />}
      >
        {transport === 'stdio' && !list.isHere && (
          <Callout kind="warn">
            stdio works for clients on <b>{list.machine}</b> only: it starts a command there.
          </Callout>
        )}
        {isMissingToken && (
          <Callout kind="warn">
            The gateway needs a token: it replaces <code>{list.placeholder}</code> below.
          </Callout>
        )}
        {secret !== undefined && transport === 'http' && (
          <Callout>The new token is filled in. It is shown until you leave this page.</Callout>
        )}
        <JsonText
          text={fillSnippet(text, list, transport === 'http' ? base : list.origin, secret)}
          label="the entry"
          isPretty={false}
        />
        <p class="connect-pane-actions">
          <Button
            kind="primary"
            icon="link"
            disabled={whyNot !== undefined}
            title={whyNot}
            onClick={() => setDialog({ action: 'link' })}
          >
            Link…
          </Button>
          {transport === 'http' && needsToken && secret === undefined && (
            <Button icon="plus" disabled={!isOwner.value} title={ownerTitle()} onClick={onToken}>
              Create a token…
            </Button>
          )}
        </p>
        {!isOwner.value && <p class="quiet">{NEEDS_OWNER}</p>}
      </PaneSection>
      {dialog && (
        <LinkDialog
          key={dialog.action}
          client={client}
          list={list}
          change={
            dialog.action === 'link'
              ? {
                  action: 'link',
                  workspace,
                  transport,
                  ...(transport === 'http' && secret !== undefined && { token: secret }),
                }
              : dialog
          }
          onChanged={onChanged}
          onUndo={name => setDialog({ action: 'unlink', name, workspace })}
          onClose={() => setDialog(undefined)}
        />
      )}
    </div>
  )
}

const FileFacts = ({ client, list }: { readonly client: ClientInfo; readonly list: ClientList }) => {
  const { state } = client
  if (!state) return null
  return (
    <Facts
      rows={[
        ['File', <PathText path={state.file} />],
        ['State', verdictOf(client, list)?.label],
        ['Machine', `${list.machine}, user ${list.user}${list.isHere ? '' : ' (not the one you are on)'}`],
        [
          'Other servers',
          state.others.length === 0 ? undefined : <span class="connect-names">{state.others.join(', ')}</span>,
        ],
      ]}
    />
  )
}

interface ClientLinksProps {
  readonly client: ClientInfo
  readonly onUnlink: (name: string, workspace: string) => void
}

const ClientLinks = ({ client: { state }, onUnlink }: ClientLinksProps) => {
  if (!state || state.links.length === 0) return null
  return (
    <PaneSection title="Entries that lead to this gateway">
      <ul class="connect-rows">
        {state.links.map(({ name, transport, workspace, hasToken }) => (
          <li key={name}>
            <code class="truncate">{name}</code>
            <span class="quiet truncate">{workspace}</span>
            <Badge>{TRANSPORTS[transport]}</Badge>
            {hasToken && <Badge>token</Badge>}
            <Button
              kind="quiet"
              aria-label={`Unlink ${name}`}
              disabled={!isOwner.value}
              title={ownerTitle()}
              onClick={() => onUnlink(name, workspace)}
            >
              Unlink…
            </Button>
          </li>
        ))}
      </ul>
    </PaneSection>
  )
}
