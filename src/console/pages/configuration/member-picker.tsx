import { IconButton } from '../../parts/button.tsx'

interface MemberPickerProps {
  readonly members: '*' | readonly string[]
  readonly servers: readonly string[] // of the configuration
  readonly error?: string | undefined
  readonly onChange: (members: '*' | readonly string[]) => void
}

/** The servers of a workspace: all, or those that are chosen, in the order in which they are listed. */
export const MemberPicker = ({ members, servers, error, onChange }: MemberPickerProps) => {
  const isAll = members === '*'
  const chosen = isAll ? [] : members
  const shown = [...chosen, ...servers.filter(name => !chosen.includes(name))]
  const toggle = (name: string): void =>
    onChange(chosen.includes(name) ? chosen.filter(each => each !== name) : [...chosen, name])
  const moveUp = (at: number): void => {
    const [before = '', name = ''] = chosen.slice(at - 1, at + 1)
    onChange([...chosen.slice(0, at - 1), name, before, ...chosen.slice(at + 1)])
  }
  return (
    <fieldset class="field config-members">
      <legend>servers</legend>
      <label class="config-check">
        <input type="checkbox" checked={isAll} onChange={() => onChange(isAll ? servers : '*')} />
        All servers that are not disabled
      </label>
      {!isAll && (
        <ul>
          {shown.map((name, at) => (
            <li key={name}>
              <label class="config-check">
                <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
                <span class="truncate">{name}</span>
              </label>
              {at > 0 && chosen.includes(name) && (
                <IconButton icon="arrow-up" label={`Move ${name} up`} onClick={() => moveUp(at)} />
              )}
            </li>
          ))}
        </ul>
      )}
      <p class={error === undefined ? 'field-hint' : 'field-error'}>
        {error ?? 'In the order in which their tools are listed.'}
      </p>
    </fieldset>
  )
}
