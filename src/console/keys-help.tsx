import { shortcutGroups } from './keys.ts'
import { Dialog } from './parts/dialog.tsx'
import { Kbd } from './parts/kbd.tsx'

/** What works in every list and form, without being registered. */
const COMMON = [
  { keys: '/', label: 'Search' },
  { keys: 'j', label: 'Next row' },
  { keys: 'k', label: 'Previous row' },
  { keys: 'Enter', label: 'Open the row' },
  { keys: 'Escape', label: 'Close' },
  { keys: 'mod+Enter', label: 'Run' },
] as const

/** Each key once, where it is first: a page says more about it than the common list. */
const withoutRepeats = <Group extends { readonly shortcuts: readonly { readonly keys: string }[] }>(
  groups: readonly Group[],
): readonly Group[] => {
  const listed = new Set<string>()
  return groups
    .map(group => ({
      ...group,
      shortcuts: group.shortcuts.filter(({ keys }) => !listed.has(keys) && listed.add(keys)),
    }))
    .filter(({ shortcuts }) => shortcuts.length > 0)
}

/** The list of keys: those of the page first, then those that work everywhere. */
export const KeysHelp = ({ onClose }: { readonly onClose: () => void }) => {
  const groups = withoutRepeats([...shortcutGroups.value.toReversed(), { title: 'Lists and forms', shortcuts: COMMON }])
  return (
    <Dialog title="Keys" size="medium" onClose={onClose}>
      <div class="keys-help">
        {groups.map(({ title, shortcuts }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {shortcuts.map(({ keys, label }) => (
                <div key={keys}>
                  <dt>
                    <Kbd keys={keys} />
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}
