import type { ComponentType } from 'preact'
import { Empty } from '../../parts/empty.tsx'
import { plural } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { lists } from './connection.ts'
import { type ExploreItem, type ExploreKind, KIND_INFO, readItem } from './kinds.ts'
import { PromptDetail } from './prompt-detail.tsx'
import { ResourceDetail, TemplateDetail } from './resource-detail.tsx'
import { type ItemDetailProps, ToolDetail } from './tool-detail.tsx'

const DETAILS: Readonly<Record<ExploreKind, ComponentType<ItemDetailProps>>> = {
  tools: ToolDetail,
  prompts: PromptDetail,
  resources: ResourceDetail,
  templates: TemplateDetail,
}

/** The last item that was shown: it stays when its server no longer lists it. */
let last: { readonly place: string; readonly item: ExploreItem } | undefined

interface ExploreDetailProps {
  readonly kind: ExploreKind
  readonly name: string
  readonly target: string
}

/** The details of the item of the address. */
export const ExploreDetail = ({ kind, name, target }: ExploreDetailProps) => {
  const { items, state } = lists.value[kind]
  const place = [target, kind, name].join('\n')
  const found = items.find(({ key }) => key === name)
  const kept = last?.place === place ? last.item : undefined
  if (found) last = { place, item: found }
  // A resource need not be listed: a link or a template may lead to it.
  const item =
    found ?? kept ?? (kind === 'resources' && state !== 'loading' ? readItem(kind, { uri: name, name }) : undefined)
  const Content = DETAILS[kind]
  if (!item)
    return state === 'loading' ? null : (
      <Empty
        icon="warning"
        title={`There is no ${KIND_INFO[kind].noun} “${name}”`}
        text={`The target lists ${plural(items.length, KIND_INFO[kind].noun)}.`}
      />
    )
  return (
    <>
      {!found && kept && state !== 'loading' && (
        <p class="explore-notice notice-problem" role="alert">
          <Icon name="warning" />“{target}” no longer lists “{name}”. What you entered is kept.
        </p>
      )}
      <Content key={place} item={item} target={target} />
    </>
  )
}
