import type { TokenList } from '../../../admin/api/tokens.ts'
import { Callout } from '../../parts/callout.tsx'
import { plural } from '../../parts/format.ts'

export interface WorkspaceChoiceProps {
  readonly names: readonly string[]
  readonly chosen: readonly string[] // none: every workspace
  readonly onChange: (chosen: readonly string[]) => void
  readonly error: string | undefined
}

/** Which workspaces a token admits to. */
export const WorkspaceChoice = ({ names, chosen, onChange, error }: WorkspaceChoiceProps) => {
  const toggle = (name: string): void =>
    onChange(chosen.includes(name) ? chosen.filter(each => each !== name) : [...chosen, name])
  return (
    <fieldset class="connect-choices">
      <legend>Workspaces</legend>
      <div>
        <label class="connect-check">
          <input type="checkbox" checked={chosen.length === 0} onChange={() => onChange([])} />
          Every workspace, also later ones
        </label>
        {names.map(name => (
          <label key={name} class="connect-check">
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            <span class="truncate">{name}</span>
          </label>
        ))}
      </div>
      {error !== undefined && <p class="field-error">{error}</p>}
    </fieldset>
  )
}

export interface FirstTokenWarningProps {
  readonly list: TokenList
  readonly isSure: boolean
  readonly onSure: (isSure: boolean) => void
}

/** What happens to clients, and to this page, after the first token. */
export const FirstTokenWarning = ({ list, isSure, onSure }: FirstTokenWarningProps) => (
  <Callout kind="warn">
    <p>
      <b>The first token turns authentication on.</b> From then on every caller needs a token, also after the last one
      is revoked.
    </p>
    <ul>
      <li>
        Clients without a token are refused at once
        {list.openSessions > 0 && <>; {plural(list.openSessions, 'session is', 'sessions are')} open now</>}.
      </li>
      <li>Clients that start “dragoman stdio” go on: they need no token.</li>
      <li>This console session goes on.</li>
    </ul>
    <label class="connect-check">
      <input type="checkbox" checked={isSure} onChange={({ currentTarget }) => onSure(currentTarget.checked)} />
      Turn authentication on
    </label>
  </Callout>
)
