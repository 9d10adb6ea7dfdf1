import { useState } from 'preact/hooks'
import type { CreatedToken, NewToken, TokenList } from '../../../admin/api/tokens.ts'
import { ApiError, api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { SkeletonRows } from '../../parts/page-frame.tsx'
import { Select } from '../../parts/select.tsx'
import { loadSession } from '../../session.ts'
import { FirstTokenWarning, WorkspaceChoice } from './new-token-parts.tsx'
import { SecretDialog } from './secret-dialog.tsx'
import { useAnswer } from './use-answer.ts'

export interface NewTokenDialogProps {
  readonly name?: string | undefined // proposed
  readonly workspace?: string | undefined // proposed; undefined: every workspace
  readonly onCreated?: ((created: CreatedToken) => void) | undefined
  readonly onClose: () => void
}

const LIFETIMES = [
  { value: '', label: 'Never' },
  { value: '1d', label: 'In 1 day' },
  { value: '30d', label: 'In 30 days' },
  { value: '90d', label: 'In 90 days' },
  { value: '1y', label: 'In 1 year' },
] as const

const LIMITED = 'A token that is limited to workspaces or by a policy has no access to the console.'

type TokenField = keyof NewToken

/** Creates a token and shows its secret, once. */
export const NewTokenDialog = ({ name: proposed = '', workspace, onCreated, onClose }: NewTokenDialogProps) => {
  const { value: list, error: unread } = useAnswer<TokenList>('admin/tokens')
  const [name, setName] = useState<string | undefined>()
  const [workspaces, setWorkspaces] = useState<readonly string[]>(workspace === undefined ? [] : [workspace])
  const [policy, setPolicy] = useState('')
  const [expires, setExpires] = useState('')
  const [isAdmin, setAdmin] = useState(false)
  const [isSure, setSure] = useState(false)
  const [error, setError] = useState<{ readonly field?: TokenField | undefined; readonly text: string } | undefined>()
  const [isBusy, setBusy] = useState(false)
  const [created, setCreated] = useState<CreatedToken | undefined>()
  if (created) return <SecretDialog created={created} onClose={onClose} />

  const shownName = name ?? freeName(proposed, list)
  const needsSure = list?.isFirst === true && !list.isRequired
  const isLimited = workspaces.length > 0 || policy !== ''
  const create = async (): Promise<void> => {
    if (!list || (needsSure && !isSure)) return
    if (shownName.trim() === '')
      return setError({ field: 'name', text: 'Give it a name, such as the client that uses it' })
    setBusy(true)
    setError(undefined)
    const wish: NewToken = {
      name: shownName,
      ...(workspaces.length > 0 && { workspaces }),
      ...(policy && { policy }),
      ...(expires && { expires }),
      ...(isAdmin && !isLimited && { admin: true }),
    }
    try {
      const made = await api.post<CreatedToken>('admin/tokens', wish)
      setCreated(made)
      onCreated?.(made)
      void loadSession().catch(() => {}) // the first token changes what it says
    } catch (failure) {
      setError({ field: fieldOf(failure), text: messageOf(failure) })
    }
    setBusy(false)
  }
  const errorOf = (field: TokenField): string | undefined => (error?.field === field ? error.text : undefined)

  return (
    <Dialog
      title="New token"
      onClose={onClose}
      onSubmit={() => void create()}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            kind="primary"
            isBusy={isBusy}
            disabled={!list || list.unusable !== undefined || (needsSure && !isSure)}
          >
            Create
          </Button>
        </>
      }
    >
      {unread !== undefined && <Callout kind="error">{unread}</Callout>}
      {!list && unread === undefined && <SkeletonRows count={4} />}
      {list?.unusable !== undefined && <Callout kind="warn">{list.unusable}.</Callout>}
      {list && list.unusable === undefined && (
        <>
          <Field label="Name" isRequired error={errorOf('name')} hint="The client or the person that uses it.">
            {control => (
              <input
                {...control}
                value={shownName}
                maxLength={100}
                spellcheck={false}
                autocomplete="off"
                autofocus
                onInput={({ currentTarget }) => setName(currentTarget.value)}
              />
            )}
          </Field>
          <WorkspaceChoice
            names={list.workspaces}
            chosen={workspaces}
            onChange={setWorkspaces}
            error={errorOf('workspaces')}
          />
          <div class="connect-field-row">
            <Field label="Policy" error={errorOf('policy')}>
              {control => (
                <Select
                  {...control}
                  value={policy}
                  disabled={list.policies.length === 0}
                  options={[
                    { value: '', label: list.policies.length === 0 ? 'None configured' : 'None' },
                    ...list.policies.map(each => ({ value: each, label: each })),
                  ]}
                  onChange={setPolicy}
                />
              )}
            </Field>
            <Field label="Expires" error={errorOf('expires')}>
              {control => <Select {...control} value={expires} options={LIFETIMES} onChange={setExpires} />}
            </Field>
          </div>
          <fieldset class="connect-choices">
            <legend>In the console</legend>
            <label class="connect-check" title={isLimited ? LIMITED : undefined}>
              <input
                type="checkbox"
                disabled={isLimited}
                checked={isAdmin && !isLimited}
                onChange={({ currentTarget }) => setAdmin(currentTarget.checked)}
              />
              It may change the gateway, as its owner
            </label>
            <p class="field-hint">
              {isLimited
                ? LIMITED
                : 'Without it, its holder sees the state of servers, the configuration and its own memory here: no messages, no logs, no tokens, no logins.'}
            </p>
          </fieldset>
          {needsSure && <FirstTokenWarning list={list} isSure={isSure} onSure={setSure} />}
          {error && error.field === undefined && <Callout kind="error">{error.text}</Callout>}
        </>
      )}
    </Dialog>
  )
}

/** The proposed name, or the first with a number that no token has. */
const freeName = (proposed: string, list: TokenList | undefined): string => {
  const taken = new Set(list?.tokens.map(({ name }) => name))
  if (proposed === '' || !taken.has(proposed)) return proposed
  let count = 2
  while (taken.has(`${proposed}-${count}`)) count++
  return `${proposed}-${count}`
}

const fieldOf = (failure: unknown): TokenField | undefined =>
  failure instanceof ApiError ? (failure.details as { readonly field?: TokenField } | undefined)?.field : undefined
