import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { useRowKeys, useVirtualRows } from './virtual-rows.ts'

export interface VirtualListProps<Item> {
  readonly label: string // the name of the list
  readonly items: readonly Item[]
  readonly keyOf: (item: Item) => string
  readonly row: (item: Item, index: number) => ComponentChildren
  readonly selected?: string | undefined // a key
  readonly onSelect: (item: Item) => void // a click, or a key that moves the selection
  readonly onOpen?: ((item: Item) => void) | undefined // Enter, or a double click
  readonly opensOnClick?: boolean // a click opens, too: for rows without a pane for their details
  readonly rowHeight?: number // the same for all, in pixels
  readonly isMain?: boolean // the list of the page: `j` and `k` move in it
  readonly empty?: ComponentChildren // in place of rows
}

const ROW = 28

/** A list of any length, of which only the rows in sight are rendered. */
export const VirtualList = <Item,>(props: VirtualListProps<Item>) => {
  const { label, items, keyOf, row, selected, onSelect, onOpen, opensOnClick = false, empty } = props
  const { rowHeight = ROW, isMain = false } = props
  const id = useId()
  const rows = useVirtualRows(items.length, rowHeight)
  const selectedAt = selected === undefined ? -1 : items.findIndex(item => keyOf(item) === selected)
  const withItem = (run: ((item: Item) => void) | undefined) => (index: number) => {
    const item = items[index]
    if (item !== undefined) run?.(item)
  }
  const onKeyDown = useRowKeys({
    rows,
    count: items.length,
    rowHeight,
    selected: selectedAt,
    onSelect: withItem(onSelect),
    onOpen: onOpen && withItem(onOpen),
    isMain,
  })
  const shown = items.slice(rows.from, rows.to)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is one of two, a listbox has options only
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have a label
    <div
      ref={rows.scroller}
      class="list"
      {...(items.length === 0 ? { role: 'group' as const } : { role: 'listbox' as const })}
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={selectedAt >= rows.from && selectedAt < rows.to ? `${id}-${selectedAt}` : undefined}
      onKeyDown={onKeyDown}
    >
      {items.length === 0 && empty}
      <div class="list-rows" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
        {shown.map((item, at) => {
          const index = rows.from + at
          return (
            <div
              key={keyOf(item)}
              id={`${id}-${index}`}
              class="list-row"
              role="option"
              aria-selected={index === selectedAt}
              aria-setsize={items.length}
              aria-posinset={index + 1}
              style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
              onClick={() => {
                onSelect(item)
                if (opensOnClick) onOpen?.(item)
              }}
              onDblClick={() => onOpen?.(item)}
            >
              {row(item, index)}
            </div>
          )
        })}
      </div>
    </div>
  )
}
