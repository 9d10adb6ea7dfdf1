import type { ComponentChildren } from 'preact'
import { useId, useMemo, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'
import { useRowKeys, useVirtualRows } from './virtual-rows.ts'

export interface TableColumn<Row> {
  readonly id: string
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  readonly width?: string // a track of a CSS grid: '80px', 'minmax(120px, 2fr)'; default: 'minmax(0, 1fr)'
  readonly isNumber?: boolean // aligned to the right
  readonly compare?: ((a: Row, b: Row) => number) | undefined // the column can be sorted
  readonly hideBelow?: number // not shown if the table is narrower, in pixels
}

export interface TableProps<Row> {
  readonly label: string // the name of the table
  readonly columns: readonly TableColumn<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly selected?: string | undefined // a key
  readonly onSelect?: ((row: Row) => void) | undefined // a click, or a key that moves the selection
  readonly onOpen?: ((row: Row) => void) | undefined // Enter, or a double click
  readonly opensOnClick?: boolean // one click opens a row; the keys still select it first
  readonly isMain?: boolean // the table of the page: `j` and `k` move in it
  readonly empty?: ComponentChildren // in place of rows
  /** Called when other rows are in sight: the index of the first, and that after the last. */
  readonly onRange?: ((from: number, to: number) => void) | undefined
}

const ROW = 28
const HEAD = 28

interface SortOrder {
  readonly column: string
  readonly isDescending: boolean
}

/** A table of any length, with rows of one height: only those in sight are rendered. It fills its place and scrolls. */
export const Table = <Row,>(props: TableProps<Row>) => {
  const { label, columns, rows: given, keyOf, selected, onSelect, onOpen, isMain = false, empty } = props
  const { opensOnClick = false, onRange } = props
  const id = useId()
  const [order, setOrder] = useState<SortOrder | undefined>()
  const sorted = useMemo(() => sortRows(given, columns, order), [given, columns, order])
  const rows = useVirtualRows(sorted.length, ROW, HEAD, onRange)
  const selectedAt = selected === undefined ? -1 : sorted.findIndex(row => keyOf(row) === selected)
  const withRow = (run: ((row: Row) => void) | undefined) => (index: number) => {
    const row = sorted[index]
    if (row !== undefined) run?.(row)
  }
  const onKeyDown = useRowKeys({
    rows,
    count: sorted.length,
    rowHeight: ROW,
    selected: selectedAt,
    onSelect: withRow(onSelect),
    onOpen: onOpen && withRow(onOpen),
    isMain,
  })
  const shown = columns.filter(({ hideBelow = 0 }) => rows.width === 0 || rows.width >= hideBelow)
  const grid = { gridTemplateColumns: shown.map(({ width = 'minmax(0, 1fr)' }) => width).join(' ') }
  return (
    <div
      ref={rows.scroller}
      class="table"
      role="grid"
      aria-label={label}
      aria-rowcount={sorted.length + 1}
      tabIndex={0}
      aria-activedescendant={selectedAt >= rows.from && selectedAt < rows.to ? `${id}-${selectedAt}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div class="table-row table-head" role="row" aria-rowindex={1} style={grid}>
        {shown.map(column => (
          <HeadCell key={column.id} column={column} order={order} onOrder={setOrder} />
        ))}
      </div>
      {sorted.length === 0 && (
        <div class="table-empty" role="row">
          <div role="gridcell">{empty}</div>
        </div>
      )}
      <div class="list-rows" role="rowgroup" style={{ height: `${sorted.length * ROW}px` }}>
        {sorted.slice(rows.from, rows.to).map((row, at) => {
          const index = rows.from + at
          return (
            <div
              key={keyOf(row)}
              id={`${id}-${index}`}
              class="table-row"
              role="row"
              aria-rowindex={index + 2}
              aria-selected={onSelect ? index === selectedAt : undefined}
              style={{ ...grid, top: `${index * ROW}px` }}
              onClick={() => {
                onSelect?.(row)
                if (opensOnClick) onOpen?.(row)
              }}
              onDblClick={opensOnClick ? undefined : () => onOpen?.(row)}
            >
              {shown.map(({ id: column, cell, isNumber }) => (
                <div key={column} role="gridcell" class={isNumber ? 'table-cell number' : 'table-cell'}>
                  {cell(row)}
                </div>
              ))}
            </div>
          )
        })}
      </div>
    </div>
  )
}

interface HeadCellProps<Row> {
  readonly column: TableColumn<Row>
  readonly order: SortOrder | undefined
  readonly onOrder: (order: SortOrder | undefined) => void
}

const HeadCell = <Row,>({ column, order, onOrder }: HeadCellProps<Row>) => {
  const { id, title, isNumber, compare } = column
  const isOrdered = order?.column === id
  const direction = order?.isDescending ? 'descending' : 'ascending'
  /** Ascending, descending, then as they were given. */
  const next = !isOrdered
    ? { column: id, isDescending: false }
    : order.isDescending
      ? undefined
      : { ...order, isDescending: true }
  return (
    <div
      role="columnheader"
      class={isNumber ? 'table-cell number' : 'table-cell'}
      aria-sort={isOrdered ? direction : undefined}
    >
      {compare ? (
        <button type="button" class="table-sort" onClick={() => onOrder(next)}>
          {title}
          {isOrdered && <Icon name="chevron-down" />}
        </button>
      ) : (
        title
      )}
    </div>
  )
}

const sortRows = <Row,>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  order: SortOrder | undefined,
): readonly Row[] => {
  const compare = order && columns.find(({ id }) => id === order.column)?.compare
  if (!compare) return rows
  const sorted = rows.toSorted(compare)
  return order.isDescending ? sorted.reverse() : sorted
}
