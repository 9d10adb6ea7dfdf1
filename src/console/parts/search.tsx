import { useRef } from 'preact/hooks'
import { useShortcuts } from '../keys.ts'
import { IconButton } from './button.tsx'
import { formatCount } from './format.ts'
import { Icon } from './icon.tsx'

export interface SearchProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly label: string // what is searched
  readonly count?: { readonly shown: number; readonly total: number } | undefined
  /** Called for the arrow down key: focus the first result. */
  readonly onLeave?: (() => void) | undefined
}

/** The search field of a page: `/` leads to it, Esc empties and leaves it. One per page. */
export const Search = ({ value, onInput, label, count, onLeave }: SearchProps) => {
  const input = useRef<HTMLInputElement>(null)
  useShortcuts('Search', [{ keys: '/', label, run: () => input.current?.select() }])

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.preventDefault()
      if (value === '') input.current?.blur()
      else onInput('')
    }
    if (event.key === 'ArrowDown' && onLeave) {
      event.preventDefault()
      onLeave()
    }
  }
  return (
    <>
      {count && (
        <span class="search-count" aria-live="polite">
          {count.shown === count.total
            ? formatCount(count.total)
            : `${formatCount(count.shown)} of ${formatCount(count.total)}`}
        </span>
      )}
      <div class="search">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          aria-label={label}
          placeholder={label}
          spellcheck={false}
          autocomplete="off"
          value={value}
          onInput={({ currentTarget }) => onInput(currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {value === '' ? <kbd>/</kbd> : <IconButton icon="close" label="Clear" onClick={() => onInput('')} />}
      </div>
    </>
  )
}
