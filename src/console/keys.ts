import { signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** A key, or several pressed one after the other (`g o`), or with Ctrl or Cmd (`mod+Enter`). */
export interface Shortcut {
  readonly keys: string
  readonly label: string // what it does, for the list of keys
  readonly run: (event: KeyboardEvent) => void
  /** Also while the user types into a field. */
  readonly isGlobal?: boolean
  /** Belongs to a dialog. While one is open, no other key works. */
  readonly isOfDialog?: boolean
}

interface ShortcutGroup {
  readonly title: string
  readonly shortcuts: readonly Shortcut[]
}

/** The groups that apply now, the newest last: its keys win. */
export const shortcutGroups = signal<readonly ShortcutGroup[]>([])

const SEQUENCE_MS = 1200

/** The keys of a page or of a part of it, while it is shown. */
export const useShortcuts = (title: string, shortcuts: readonly Shortcut[]): void => {
  const latest = useRef(shortcuts)
  latest.current = shortcuts
  const names = shortcuts.map(({ keys }) => keys).join('\n')
  // Before the next event: a key never meets the shortcuts of what was shown before.
  useLayoutEffect(() => {
    const group: ShortcutGroup = {
      title,
      // Each render makes new functions: the group calls the latest.
      shortcuts: latest.current.map((shortcut, at) => ({
        ...shortcut,
        run: event => latest.current[at]?.run(event),
      })),
    }
    shortcutGroups.value = [...shortcutGroups.peek(), group]
    return () => {
      shortcutGroups.value = shortcutGroups.peek().filter(each => each !== group)
    }
  }, [title, names])
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches('input:not([type=checkbox],[type=radio]), textarea, select'))

const isCommand = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey

const nameOf = (event: KeyboardEvent): string =>
  isCommand(event) ? `mod+${event.key}` : event.key === ' ' ? 'Space' : event.key

const isKnown = (name: string): boolean =>
  shortcutGroups.peek().some(({ shortcuts }) => shortcuts.some(({ keys }) => keys === name))

/** Calls the shortcuts of the groups. Keys that have no shortcut stay with the browser. */
export const listenForKeys = (): void => {
  let before = { key: '', at: 0 }
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return
    const name = nameOf(event)
    const sequence = event.timeStamp - before.at < SEQUENCE_MS ? `${before.key} ${name}` : ''
    before = { key: name, at: event.timeStamp }
    const isBlocked = document.querySelector('dialog[open], .menu:popover-open') !== null
    const all = shortcutGroups
      .peek()
      .toReversed()
      .flatMap(({ shortcuts }) => shortcuts)
      .filter(
        ({ isGlobal = false, isOfDialog = false }) =>
          (isOfDialog || !isBlocked) && (isGlobal || !isTyping(event.target)),
      )
    const found = all.find(({ keys }) => keys === sequence) ?? all.find(({ keys }) => keys === name)
    if (!found) {
      // Behind a dialog the key does nothing, instead of what the browser does with it.
      if (isBlocked && isCommand(event) && isKnown(name)) event.preventDefault()
      return
    }
    event.preventDefault()
    before = { key: '', at: 0 }
    // A key that is held down runs a command once.
    if (!(event.repeat && isCommand(event))) found.run(event)
  })
}
