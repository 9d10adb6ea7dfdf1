import { useMemo, useState } from 'preact/hooks'
import type { GraphNode, MemoryGraph } from '../../../../protocol/memory-views.ts'
import { IconButton } from '../../../parts/button.tsx'
import { Empty } from '../../../parts/empty.tsx'
import { formatCount, plural } from '../../../parts/format.ts'
import { VirtualList } from '../../../parts/virtual-list.tsx'
import { navigate } from '../../../router.ts'
import { type MemoryPlace, memoryHref, memoryQuery } from '../memory-address.ts'
import { useMemoryData } from '../memory-client.ts'
import { MemoryFailure, MemoryLoading } from '../memory-states.tsx'
import { GraphCanvas } from './graph-canvas.tsx'
import { createLinkIndex, foundNodes } from './graph-index.ts'

const NO_LINKS = 'No facts connect entities yet. They appear when memories name two of them in a sentence.'
const COLORED = 6

/** The entities as a graph, and as a list with which the keyboard does the same. */
export const GraphView = ({ place }: { readonly place: MemoryPlace }) => {
  const { data: graph, error } = useMemoryData<MemoryGraph>(`admin/memory/graph${memoryQuery(place)}`)
  if (error !== undefined) return <MemoryFailure message={error} />
  if (!graph) return <MemoryLoading />
  if (graph.nodes.length === 0)
    return (
      <Empty icon="memory" title="No entities" text={place.asOf === undefined ? NO_LINKS : 'Nothing was known then.'} />
    )
  return <ShownGraph graph={graph} place={place} />
}

const ShownGraph = ({ graph, place }: { readonly graph: MemoryGraph; readonly place: MemoryPlace }) => {
  const [selected, setSelected] = useState<number | undefined>()
  const [hovered, setHovered] = useState<number | undefined>()
  const [zoom, setZoom] = useState({ factor: 1, count: 0 })
  const index = useMemo(() => createLinkIndex(graph), [graph])
  const [community, setCommunity] = useState<number | undefined>()
  const found = useMemo(() => foundNodes(graph, place.query, community), [graph, place.query, community])
  const node = hovered ?? selected
  const focus = useMemo(
    () => ({ node, neighbours: node === undefined ? new Set<number>() : index.neighboursOf(node), found }),
    [node, index, found],
  )
  const listed = useMemo(
    () => graph.nodes.map((each, at) => ({ ...each, at })).filter(({ at }) => found?.has(at) ?? true),
    [graph, found],
  )
  const open = (at: number): void => {
    const id = graph.nodes[at]?.id
    if (id !== undefined) navigate(memoryHref({ ...place, view: 'entity', id, query: '' }))
  }
  const press = (factor: number) => () => setZoom(({ count }) => ({ factor, count: count + 1 }))
  return (
    <div class="graph">
      <div class="graph-main">
        <GraphCanvas {...{ graph, focus, selected, zoom }} onHover={setHovered} onOpen={open} />
        <div class="graph-zoom">
          <IconButton icon="plus" label="Zoom in" onClick={press(1.4)} />
          <IconButton icon="minus" label="Zoom out" onClick={press(1 / 1.4)} />
          <IconButton icon="fit" label="Show all" onClick={press(0)} />
        </div>
        <Legend graph={graph} shown={community} onShow={setCommunity} />
      </div>
      <section class="graph-side" aria-label="Entities of the graph">
        <p class="graph-count quiet" aria-live="polite">
          {listed.length === graph.nodes.length
            ? plural(graph.nodes.length, 'entity', 'entities')
            : `${formatCount(listed.length)} of ${plural(graph.nodes.length, 'entity', 'entities')}`}
          {graph.total > graph.nodes.length && `, the most connected of ${formatCount(graph.total)}`}
        </p>
        <VirtualList
          label="Entities; Enter opens one"
          items={listed}
          keyOf={({ id }) => id}
          selected={selected === undefined ? undefined : graph.nodes[selected]?.id}
          onSelect={({ at }) => setSelected(at)}
          onOpen={({ at }) => open(at)}
          isMain
          empty={<p class="memory-none">No entity of the graph matches.</p>}
          row={each => <ListedNode node={each} />}
        />
        {selected !== undefined && (
          <Neighbours
            graph={graph}
            node={selected}
            ids={index.neighboursOf(selected)}
            onSelect={setSelected}
            onOpen={open}
          />
        )}
      </section>
    </div>
  )
}

const ListedNode = ({ node }: { readonly node: GraphNode }) => (
  <>
    <span class={`graph-dot graph-dot-${colorNumber(node.community)}`} />
    <span class="truncate graph-name">{node.name}</span>
    <span class="quiet">{formatCount(node.facts)}</span>
  </>
)

const colorNumber = (community: number | undefined): number => (community === undefined ? 0 : (community % COLORED) + 1)

interface NeighboursProps {
  readonly graph: MemoryGraph
  readonly node: number
  readonly ids: ReadonlySet<number>
  readonly onSelect: (node: number) => void
  readonly onOpen: (node: number) => void
}

const MOST_NEIGHBOURS = 40

/** The neighbours of the selected entity, so that the graph can be walked without a pointer. */
const Neighbours = ({ graph, node, ids, onSelect, onOpen }: NeighboursProps) => (
  <div class="graph-neighbours">
    <h3>
      <button type="button" class="link truncate" onClick={() => onOpen(node)}>
        Open {graph.nodes[node]?.name}
      </button>
    </h3>
    <p class="quiet">{ids.size === 0 ? 'It has no connections.' : `Connected with ${formatCount(ids.size)}:`}</p>
    <ul>
      {[...ids].slice(0, MOST_NEIGHBOURS).map(id => (
        <li key={id}>
          <button type="button" class="link truncate" onClick={() => onSelect(id)}>
            {graph.nodes[id]?.name}
          </button>
        </li>
      ))}
    </ul>
  </div>
)

interface LegendProps {
  readonly graph: MemoryGraph
  readonly shown: number | undefined
  readonly onShow: (community: number | undefined) => void
}

/** The largest communities; a press shows one alone. */
const Legend = ({ graph, shown, onShow }: LegendProps) => (
  <div class="graph-legend" role="group" aria-label="Communities">
    {graph.communities.slice(0, COLORED).map((name, at) => (
      <button key={at} type="button" aria-pressed={at === shown} onClick={() => onShow(at === shown ? undefined : at)}>
        <span class={`graph-dot graph-dot-${at + 1}`} />
        <span class="truncate">{name}</span>
      </button>
    ))}
  </div>
)
