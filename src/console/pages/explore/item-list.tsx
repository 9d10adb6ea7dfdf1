import type { ComponentChildren } from 'preact'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { plural } from '../../parts/format.ts'
import { SkeletonRows } from '../../parts/page-frame.tsx'
import { VirtualList } from '../../parts/virtual-list.tsx'
import { type ItemList, loadList, loadNextPage, showAllTools, showsAllTools } from './connection.ts'
import { type ExploreItem, type ExploreKind, KIND_INFO } from './kinds.ts'

export interface ExploreListProps {
  readonly kind: ExploreKind
  readonly list: ItemList
  readonly shown: readonly ExploreItem[]
  readonly search: string
  readonly selected: string | undefined
  readonly onSelect: (item: ExploreItem) => void
  readonly onOpen: () => void
}

const keyOf = ({ key }: ExploreItem): string => key

const row = ({ key, name, title, description }: ExploreItem) => (
  <>
    <span class="explore-name mono">{name === key ? key : name}</span>
    <span class="explore-about quiet">{title ?? description?.split('\n')[0]?.slice(0, 200)}</span>
  </>
)

/** Says how many tools clients have to search for, and shows them. */
const BudgetNote = ({ leftOut }: { readonly leftOut: number | undefined }) => {
  const isAll = showsAllTools.value
  if (!isAll && leftOut === undefined) return null
  return (
    <p class="list-note">
      {isAll
        ? 'All tools are shown, also those that a budget leaves out. '
        : `The budget leaves out ${plural(leftOut ?? 0, 'tool')}. `}
      <Button kind="quiet" onClick={() => showAllTools(!isAll)}>
        {isAll ? 'Show what clients see' : 'Show all tools'}
      </Button>
    </p>
  )
}

/** The tools, prompts, resources or templates of the target. */
export const ExploreList = ({ kind, list, shown, search, selected, onSelect, onOpen }: ExploreListProps) => {
  const { state, items, error, note, next } = list
  const { noun, title } = KIND_INFO[kind]
  if (state === 'loading' && items.length === 0) return <SkeletonRows />
  const empty: ComponentChildren =
    search !== '' && items.length > 0 ? (
      <Empty
        icon="search"
        title={`No ${noun} has these words`}
        text="The search looks at names, titles and descriptions."
      />
    ) : state === 'failed' ? (
      <Empty icon="warning" title={`The ${title.toLowerCase()} could not be listed`} text={error}>
        <Button icon="restart" onClick={() => void loadList(kind)}>
          Try again
        </Button>
      </Empty>
    ) : (
      <Empty
        icon="explore"
        title={`No ${title.toLowerCase()}`}
        text={
          state === 'none' ? `This target does not offer ${title.toLowerCase()}.` : 'The list of this target is empty.'
        }
      />
    )
  return (
    <>
      {state === 'loading' && next === undefined && (
        <p class="list-note" role="status">
          {plural(items.length, noun)} so far…
        </p>
      )}
      {state === 'failed' && items.length > 0 && (
        <p class="list-note list-problem" role="alert">
          Not current: {error}
        </p>
      )}
      {note !== undefined && <p class="list-note">{note}</p>}
      {kind === 'tools' && <BudgetNote leftOut={list.leftOut} />}
      <VirtualList
        label={title}
        items={shown}
        keyOf={keyOf}
        row={row}
        selected={selected}
        onSelect={onSelect}
        onOpen={onOpen}
        isMain
        empty={empty}
      />
      {next !== undefined && (
        <p class="list-note list-more">
          <span>{plural(items.length, noun)} so far</span>
          <Button isBusy={state === 'loading'} onClick={() => void loadNextPage(kind)}>
            Next page
          </Button>
        </p>
      )}
    </>
  )
}
