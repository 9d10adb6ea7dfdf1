import { useRef } from 'preact/hooks'
import { useShortcuts } from '../keys.ts'
import { IconButton } from './button.tsx'
import { formatCount } from './format.ts'
import { Icon } from './icon.tsx'

export interface SearchProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly label: string // what is searched
  /** How many of all match; null: not known now. It never moves what is beside it. */
  readonly count?: { readonly shown: number; readonly total: number } | null
  /** Called for the arrow down key: focus the first result. */
  readonly onLeave?: (() => void) | undefined
}

const countText = ({ shown, total }: NonNullable<SearchProps['count']>): string =>
  shown === total ? formatCount(total) : `${formatCount(shown)} of ${formatCount(total)}`

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
      {count !== undefined && (
        <span class="search-count" aria-live="polite">
          {count && countText(count)}
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
