import { useMemo } from 'preact/hooks'
import { Table, type TableColumn } from '../../../parts/table.tsx'
import { cellText, compareCells, isNumberColumn, type TableData, type TableRow } from './table-rows.ts'

const ROW = 28
const MOST_HEIGHT = 420
const LONGEST_CELL = 300

/** A list of objects as a table that can be sorted. */
export const DataTable = ({ table, label }: { readonly table: TableData; readonly label: string }) => {
  const columns = useMemo(
    () =>
      table.columns.map(
        (name): TableColumn<TableRow> => ({
          id: name,
          title: name,
          isNumber: isNumberColumn(table, name),
          compare: (a, b) => compareCells(a.cells[name], b.cells[name]),
          cell: ({ cells }) => {
            const text = cellText(cells[name])
            return <span title={text.slice(0, 2000)}>{text.slice(0, LONGEST_CELL)}</span>
          },
        }),
      ),
    [table],
  )
  const height = Math.min(MOST_HEIGHT, (table.rows.length + 1) * ROW + 2)
  return (
    <div class="data-table" style={{ height: `${height}px` }}>
      <Table label={label} columns={columns} rows={table.rows} keyOf={({ key }) => key} />
    </div>
  )
}
