import { useEffect, useRef } from 'preact/hooks'
import type { MemoryGraph } from '../../../../protocol/memory-views.ts'
import { theme } from '../../../theme.ts'
import type { GraphFocus } from './draw.ts'
import { createPicture, type GraphPicture } from './picture.ts'

export interface GraphCanvasProps {
  readonly graph: MemoryGraph
  readonly focus: GraphFocus
  readonly selected: number | undefined // scrolled into view
  readonly onHover: (node: number | undefined) => void
  readonly onOpen: (node: number) => void
  readonly zoom: { readonly factor: number; readonly count: number } // `count` grows with each press of a button
}

/** The picture of the graph. Screen readers and keyboards use the list beside it. */
export const GraphCanvas = ({ graph, focus, selected, onHover, onOpen, zoom }: GraphCanvasProps) => {
  const box = useRef<HTMLDivElement>(null)
  const element = useRef<HTMLCanvasElement>(null)
  const view = useRef<GraphPicture | undefined>(undefined)
  const latest = useRef({ onHover, onOpen })
  latest.current = { onHover, onOpen }

  useEffect(() => {
    if (!box.current || !element.current) return
    const picture = createPicture(box.current, element.current, graph, latest)
    view.current = picture
    return picture.close
  }, [graph])
  useEffect(() => view.current?.setFocus(focus), [graph, focus])
  useEffect(() => {
    if (selected !== undefined) view.current?.reveal(selected)
  }, [graph, selected])
  useEffect(() => {
    if (zoom.count > 0) view.current?.zoom(zoom.factor)
  }, [zoom])
  useEffect(() => view.current?.readTheme(), [theme.value])

  const label = `Graph of ${graph.nodes.length} entities with ${graph.links.length} connections. The list of entities has the same.`
  return (
    <div ref={box} class="graph-box">
      <canvas ref={element} role="img" aria-label={label} />
    </div>
  )
}
