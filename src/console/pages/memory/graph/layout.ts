import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from 'd3-force'
import type { MemoryGraph } from '../../../../protocol/memory-views.ts'

/** The places of the nodes, in the order of the graph's. */
export interface GraphLayout {
  readonly x: Float32Array
  readonly y: Float32Array
}

const TICKS = 260
const SLICE_MS = 8 // of work before the browser may answer the user
const PAUSE_MS = 8 // between slices: the page draws, and other work is done
const COOLED = 0.001

/** The radius of a node: its area grows with the number of its facts. */
export const nodeRadius = (facts: number): number => Math.min(18, 3 + Math.sqrt(facts) * 1.3)

/**
 * Arranges a graph with forces, in slices between which the page stays responsive. It begins with the same places each time
 * and uses no chance, so that a graph looks the same whenever it is shown.
 */
export const startLayout = (
  { nodes, links }: MemoryGraph,
  onStep: (layout: GraphLayout, isDone: boolean) => void,
  isInterrupted: () => boolean = () => false, // the user does something: it waits
): (() => void) => {
  const bodies: SimulationNodeDatum[] = nodes.map(() => ({}))
  const many = nodes.length > 200
  const simulation = forceSimulation(bodies)
    .force(
      'link',
      forceLink(links.map(({ source, target }) => ({ source, target })))
        .distance(many ? 34 : 70)
        .iterations(1),
    )
    .force(
      'charge',
      forceManyBody()
        .strength(many ? -46 : -160)
        .distanceMax(500)
        .theta(1),
    )
    .force('x', forceX(0).strength(0.05))
    .force('y', forceY(0).strength(0.07)) // windows are wider than they are high
    .force(
      'collide',
      forceCollide<SimulationNodeDatum>((_, at) => nodeRadius(nodes[at]?.facts ?? 0) + 2),
    )
    .alphaDecay(1 - COOLED ** (1 / TICKS))
    .stop()
  const layout: GraphLayout = { x: new Float32Array(nodes.length), y: new Float32Array(nodes.length) }
  let ticks = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const step = (): void => {
    if (isInterrupted()) {
      timer = setTimeout(step, PAUSE_MS)
      return
    }
    const until = performance.now() + SLICE_MS
    do {
      simulation.tick()
      ticks++
    } while (ticks < TICKS && performance.now() < until)
    for (const [at, { x = 0, y = 0 }] of bodies.entries()) {
      layout.x[at] = x
      layout.y[at] = y
    }
    const isDone = ticks >= TICKS
    onStep(layout, isDone)
    if (!isDone) timer = setTimeout(step, PAUSE_MS)
  }
  timer = setTimeout(step)
  return () => clearTimeout(timer)
}
