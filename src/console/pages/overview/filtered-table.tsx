import { Empty, type EmptyProps } from '../../parts/empty.tsx'
import { Table, type TableProps } from '../../parts/table.tsx'

/** What the page gives to one of its tables. */
export interface FilteredRows<Row> {
  readonly rows: readonly Row[]
  readonly selected: string | undefined
  readonly isFiltered: boolean
  readonly onSelect: (row: Row) => void
}

interface FilteredTableProps<Row> extends FilteredRows<Row>, Pick<TableProps<Row>, 'columns' | 'keyOf'> {
  readonly noun: string // one row, for a sentence
  readonly empty: EmptyProps // without a filter: what to do next
}

/** A table that the search and the workspace of the page filter: choosing a row opens it. */
export const FilteredTable = <Row,>({ noun, isFiltered, empty, ...table }: FilteredTableProps<Row>) => {
  const noMatch: EmptyProps = {
    icon: 'search',
    title: `No ${noun} matches`,
    text: 'Change the search, or choose another workspace.',
  }
  return (
    <Table
      {...table}
      label={`${noun.charAt(0).toUpperCase()}${noun.slice(1)}s`}
      onOpen={table.onSelect}
      isMain
      empty={<Empty {...(isFiltered ? noMatch : empty)} />}
    />
  )
}
