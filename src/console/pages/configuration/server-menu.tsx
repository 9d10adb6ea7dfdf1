import { useState } from 'preact/hooks'
import { isObject } from '../../mcp/messages.ts'
import { Menu } from '../../parts/menu.tsx'
import { objectAt, withValue } from './edits.ts'
import type { ServerRow } from './entries.ts'
import { NameDialog } from './name-dialog.tsx'
import { renameServer } from './server-rename.ts'
import { change, draft } from './store.ts'

interface ServerMenuProps {
  readonly row: ServerRow
  readonly onRenamed: (name?: string) => void // to the server of this name; undefined: none is left
}

/** What can be done with a server as a whole. All of it waits in the draft until it is saved. */
export const ServerMenu = ({ row, onRenamed }: ServerMenuProps) => {
  const [isRenaming, setRenaming] = useState(false)
  const { name, path, entry, isDisabled } = row
  const siblings = Object.keys(objectAt(draft.value.value, path.slice(0, -1)))

  const setDisabled = (): void =>
    change(now => {
      const { enabled: _, ...kept } = entry
      const { disabled: __, ...enabled } = kept
      return { ...now, value: withValue(now.value, path, isDisabled ? enabled : { ...kept, disabled: true }) }
    })
  const duplicate = (): void => {
    let number = 2
    while (siblings.includes(`${name}-${number}`)) number++
    const copy = `${name}-${number}`
    change(now => ({ ...now, value: withValue(now.value, [...path.slice(0, -1), copy], entry) }))
    onRenamed(copy)
  }
  const remove = (): void => {
    change(now => ({ ...now, value: withoutServer(now.value, path) }))
    onRenamed()
  }
  return (
    <>
      <Menu
        label={`Actions for ${name}`}
        items={[
          { label: isDisabled ? 'Enable' : 'Disable', icon: isDisabled ? 'play' : 'pause', onSelect: setDisabled },
          { label: 'Rename…', icon: 'edit', onSelect: () => setRenaming(true) },
          { label: 'Duplicate', icon: 'copy', onSelect: duplicate },
          { label: 'Remove', icon: 'trash', isDanger: true, onSelect: remove },
        ]}
      />
      {isRenaming && (
        <NameDialog
          title={`Rename ${name}`}
          label="Name"
          action="Rename"
          hint="Workspaces and policies that name the server are changed, too."
          value={name}
          taken={siblings}
          onClose={() => setRenaming(false)}
          onName={to => {
            change(now => renameServer(now, path, to))
            setRenaming(false)
            onRenamed(to)
          }}
        />
      )}
    </>
  )
}

/** Workspaces that list the server do not list it any more. */
const withoutServer = (value: Readonly<Record<string, unknown>>, path: readonly string[]) => {
  const name = path.at(-1)
  return Object.entries(objectAt(value, ['workspaces'])).reduce(
    (now, [workspace, entry]) => {
      if (!isObject(entry) || !Array.isArray(entry.servers) || !entry.servers.includes(name)) return now
      return withValue(
        now,
        ['workspaces', workspace, 'servers'],
        entry.servers.filter(each => each !== name),
      )
    },
    withValue(value, path, undefined),
  )
}
