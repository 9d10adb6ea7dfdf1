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

/** The list of keys: those of the page first, then those that work everywhere. */
export const KeysHelp = ({ onClose }: { readonly onClose: () => void }) => {
  const groups = shortcutGroups.value.toReversed().filter(({ shortcuts }) => shortcuts.length > 0)
  return (
    <Dialog title="Keys" size="medium" onClose={onClose}>
      <div class="keys-help">
        {[...groups, { title: 'Lists and forms', shortcuts: COMMON }].map(({ title, shortcuts }) => (
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
