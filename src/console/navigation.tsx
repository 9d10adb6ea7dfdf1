import { messageOf } from './api.ts'
import { feedState } from './events.ts'
import { PAGES } from './pages.ts'
import { IconButton } from './parts/button.tsx'
import { Icon } from './parts/icon.tsx'
import { Menu } from './parts/menu.tsx'
import { toast } from './parts/toast.tsx'
import { hrefTo, route } from './router.ts'
import { session, signOut } from './session.ts'
import { setTheme, THEMES, theme } from './theme.ts'

const FEED_TEXTS = { off: 'Idle', connecting: 'Opening', live: 'Live', broken: 'Offline' } as const
const FEED_TITLES = {
  off: 'This page follows no changes',
  connecting: 'The page connects to the gateway',
  live: 'Changes are shown as they happen',
  broken: 'The gateway does not answer; the page connects again by itself',
} as const
const FEED_STATES = { off: 'off', connecting: 'busy', live: 'ok', broken: 'warn' } as const
const THEME_ICONS = { system: 'system', light: 'sun', dark: 'moon' } as const
const THEME_TEXTS = { system: 'Theme of the system', light: 'Light theme', dark: 'Dark theme' } as const

/** The pages at the left, or at the bottom of a narrow window; who the user is, the theme, the keys. */
export const Navigation = ({ onHelp }: { readonly onHelp: () => void }) => (
  <nav class="navigation" aria-label="Pages">
    <div class="brand">
      <Mark />
      <span>Dragoman</span>
      <span class="brand-version">{session.value?.version ?? ''}</span>
    </div>
    <ul class="pages">
      {PAGES.map(({ id, title, key }) => (
        <li key={id}>
          <a
            href={hrefTo(id)}
            aria-current={route.value.page === id ? 'page' : undefined}
            title={`${title} (g ${key})`}
          >
            <Icon name={id} />
            <span>{title}</span>
          </a>
        </li>
      ))}
    </ul>
    <div class="navigation-foot">
      <span class="feed" title={FEED_TITLES[feedState.value]}>
        <span class={`state-dot state-${FEED_STATES[feedState.value]}`} />
        <span>{FEED_TEXTS[feedState.value]}</span>
      </span>
      <ThemeMenu />
      <IconButton icon="keyboard" label="Keys (?)" onClick={onHelp} />
      <UserMenu />
    </div>
  </nav>
)

/** The same drawing as icon.svg. */
const Mark = () => (
  <svg class="mark" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <rect width="16" height="16" rx="3.5" />
    <path d="M3.5 5.5h6.2M7.6 3.4l2.1 2.1-2.1 2.1M12.5 10.5H6.3M8.4 8.4l-2.1 2.1 2.1 2.1" />
  </svg>
)

const ThemeMenu = () => (
  <Menu
    label="Theme"
    icon={THEME_ICONS[theme.value]}
    items={THEMES.map(each => ({
      label: THEME_TEXTS[each],
      icon: THEME_ICONS[each],
      isChecked: theme.value === each,
      onSelect: () => setTheme(each),
    }))}
  />
)

const UserMenu = () => {
  const { principal, needsToken, csrf } = session.value ?? {}
  if (!needsToken && csrf === undefined) return null // every user of this machine may look
  return (
    <Menu
      label={principal === undefined ? 'Session' : `Signed in as ${principal}`}
      icon="sign-out"
      items={[
        {
          label: 'Sign out',
          icon: 'sign-out',
          onSelect: () => void signOut().catch((error: unknown) => toast(messageOf(error), { kind: 'error' })),
        },
      ]}
    />
  )
}
