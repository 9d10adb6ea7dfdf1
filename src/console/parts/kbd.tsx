const isMac = /Mac|iPhone|iPad/.test(navigator.platform)

const SHOWN: Readonly<Record<string, string>> = {
  mod: isMac ? '⌘' : 'Ctrl',
  Enter: '↵',
  Escape: 'Esc',
  ArrowUp: '↑',
  ArrowDown: '↓',
  ArrowLeft: '←',
  ArrowRight: '→',
}

/** Keys as in `useShortcuts`: `g o` one after the other, `mod+Enter` together. */
export const Kbd = ({ keys }: { readonly keys: string }) => (
  <span class="keys">
    {keys.split(' ').map(chord => (
      <kbd key={chord}>
        {chord
          .split('+')
          .map(key => SHOWN[key] ?? key)
          .join(isMac ? '' : '+')}
      </kbd>
    ))}
  </span>
)
