import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import { SplitView } from '../../parts/split-view.tsx'
import { Table, type TableColumn } from '../../parts/table.tsx'
import { toast } from '../../parts/toast.tsx'
import { type FactRow, Facts } from './pane-parts.tsx'

/** What revoking a row is called, and what it does. */
export interface Revocation<Row> {
  readonly action: string // a verb: the button and the dialog
  readonly path: (row: Row) => string // of the admin API, to delete
  readonly question: (row: Row) => string
  readonly done: (row: Row) => string
  readonly warning: (row: Row) => ComponentChildren
}

interface RevocableListProps<Row> {
  readonly label: string
  readonly columns: readonly TableColumn<Row>[]
  readonly rows: readonly Row[]
  readonly chosen: Row | undefined // also one that the search hides
  readonly title: string // of the details pane
  readonly facts: (row: Row) => readonly FactRow[]
  readonly revocation: Revocation<Row>
  readonly empty: ComponentChildren
  readonly onSelect: (id: string | undefined) => void
  readonly onChanged: () => void
}

/** Rows that give access, each with its facts and a button that takes the access away. */
export const RevocableList = <Row extends { readonly id: string }>(props: RevocableListProps<Row>) => {
  const { label, columns, rows, chosen, title, facts, revocation, empty, onSelect, onChanged } = props
  const { action, path, question, done, warning } = revocation
  const [isAsking, setAsking] = useState(false)
  const [isBusy, setBusy] = useState(false)

  const revoke = async (row: Row): Promise<void> => {
    setBusy(true)
    try {
      await api.delete(path(row))
      toast(done(row), { kind: 'ok' })
      onSelect(undefined)
    } catch (error) {
      toast(messageOf(error), { kind: 'error' })
    }
    setBusy(false)
    setAsking(false)
    onChanged()
  }

  return (
    <>
      <SplitView
        label={title}
        storageKey="connect-token"
        defaultWidth={420}
        onClose={() => onSelect(undefined)}
        detail={
          chosen && (
            <div class="connect-pane">
              <Facts rows={facts(chosen)} />
              <p class="connect-pane-actions">
                <Button kind="danger" icon="trash" onClick={() => setAsking(true)}>
                  {action}…
                </Button>
              </p>
            </div>
          )
        }
      >
        <Table
          label={label}
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
          selected={chosen?.id}
          onSelect={({ id }) => onSelect(id)}
          isMain
          empty={empty}
        />
      </SplitView>
      {isAsking && chosen && (
        <Confirm
          title={question(chosen)}
          action={action}
          isDanger
          isBusy={isBusy}
          onConfirm={() => void revoke(chosen)}
          onClose={() => setAsking(false)}
        >
          {warning(chosen)}
        </Confirm>
      )}
    </>
  )
}
