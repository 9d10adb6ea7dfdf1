import { Badge } from '../../parts/badge.tsx'
import type { TableColumn } from '../../parts/table.tsx'
import type { EntryMark } from './entries.ts'

interface MarkedEntry {
  readonly name: string
  readonly mark: EntryMark // whether the draft changes it
}

/** The first column of the entries of a section: the name, and whether the draft changes the entry. */
export const nameColumn = <Row extends MarkedEntry>(title: string): TableColumn<Row> => ({
  id: 'name',
  title,
  width: 'minmax(110px, 1fr)',
  compare: (a, b) => a.name.localeCompare(b.name),
  cell: ({ name, mark }) => (
    <span class="config-name">
      <span class="truncate">{name}</span>
      {mark !== undefined && <Badge kind="accent">{mark === 'new' ? 'new' : 'edited'}</Badge>}
    </span>
  ),
})
