import type { MemoryGraph } from '../../../../protocol/memory-views.ts'
import { type GraphCamera, nodeScale } from './camera.ts'
import { type LabelCandidate, placeLabels } from './labels.ts'
import { type GraphLayout, nodeRadius } from './layout.ts'

/** The colours of the theme, as a canvas understands them. */
export interface GraphColors {
  readonly background: string
  readonly text: string
  readonly quiet: string
  readonly link: string
  readonly accent: string
  readonly series: readonly string[]
}

/** What is emphasized: a node with its neighbours, and the nodes that a search has found. */
export interface GraphFocus {
  readonly node: number | undefined
  readonly neighbours: ReadonlySet<number>
  readonly found: ReadonlySet<number> | undefined // undefined: nothing is searched
}

const FONT_SIZE = 11
const SERIES = 6
const PIXELS_PER_LABEL = 8000 // more labels than that hide the graph
const FEWEST_LABELS = 30
const LONGEST_LABEL = 28

/** Reads the colours of an element's theme: tokens may be functions that only the browser resolves. */
export const readColors = (element: HTMLElement): GraphColors => {
  const probe = document.createElement('span')
  probe.style.transitionProperty = 'none' // otherwise the colour that is read is still the one before
  element.append(probe)
  const resolve = (token: string): string => {
    probe.style.color = `var(${token})`
    return getComputedStyle(probe).color
  }
  const colors = {
    background: resolve('--bg'),
    text: resolve('--text'),
    quiet: resolve('--text-3'),
    link: resolve('--border-strong'),
    accent: resolve('--accent'),
    series: Array.from({ length: SERIES }, (_, at) => resolve(`--series-${at + 1}`)),
  }
  probe.remove()
  return colors
}

/** A label is not longer than can be read at a glance. */
const shortLabel = (name: string): string => {
  const text = name.replaceAll(/\s+/g, ' ')
  return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text
}

/** Communities take turns with the colours; an entity of none is grey. */
const communityColor = (community: number | undefined, colors: GraphColors): string =>
  (community === undefined ? undefined : colors.series[community % colors.series.length]) ?? colors.quiet

interface Scene {
  readonly graph: MemoryGraph
  readonly layout: GraphLayout
  readonly camera: GraphCamera
  readonly focus: GraphFocus
  readonly colors: GraphColors
  readonly width: number
  readonly height: number
  readonly font: string
  readonly widthOf: (label: string) => number
}

const FADED = 0.14

/** Whether a node is emphasized, or everything is. */
const isBright = (node: number, { node: chosen, neighbours, found }: GraphFocus): boolean => {
  if (chosen !== undefined) return node === chosen || neighbours.has(node)
  return found === undefined || found.has(node)
}

/** Draws the whole picture. */
export const drawGraph = (canvas: CanvasRenderingContext2D, scene: Scene): void => {
  const { width, height, colors } = scene
  canvas.globalAlpha = 1
  canvas.fillStyle = colors.background
  canvas.fillRect(0, 0, width, height)
  drawLinks(canvas, scene)
  drawNodes(canvas, scene)
  drawLabels(canvas, scene)
}

const drawLinks = (canvas: CanvasRenderingContext2D, { graph, layout, camera, focus, colors }: Scene): void => {
  const { scale, x, y } = camera
  const isFocused = focus.node !== undefined || focus.found !== undefined
  const stroke = (links: MemoryGraph['links'], color: string, alpha: number, width: number): void => {
    canvas.beginPath()
    for (const { source, target } of links) {
      canvas.moveTo((layout.x[source] ?? 0) * scale + x, (layout.y[source] ?? 0) * scale + y)
      canvas.lineTo((layout.x[target] ?? 0) * scale + x, (layout.y[target] ?? 0) * scale + y)
    }
    canvas.strokeStyle = color
    canvas.globalAlpha = alpha
    canvas.lineWidth = width
    canvas.stroke()
  }
  const crowded = graph.links.length > 800
  stroke(graph.links, colors.link, isFocused ? FADED * 2 : 0.9, crowded ? 0.7 : 1)
  if (focus.node === undefined) return
  const own = graph.links.filter(({ source, target }) => source === focus.node || target === focus.node)
  stroke(own, colors.accent, 0.8, 1.4)
}

/** All nodes of one look are one path: a thousand small ones take many times as long. */
const drawNodes = (canvas: CanvasRenderingContext2D, scene: Scene): void => {
  const { graph, focus, colors } = scene
  const looks = new Map<string, number[]>()
  for (const [node, { community }] of graph.nodes.entries()) {
    const look = `${isBright(node, focus) ? 1 : FADED} ${communityColor(community, colors)}`
    const known = looks.get(look)
    if (known) known.push(node)
    else looks.set(look, [node])
  }
  canvas.lineWidth = 1
  canvas.strokeStyle = colors.background
  for (const [look, nodes] of looks) {
    const space = look.indexOf(' ')
    canvas.globalAlpha = Number(look.slice(0, space))
    canvas.fillStyle = look.slice(space + 1)
    traceNodes(canvas, scene, nodes)
    canvas.fill()
    canvas.stroke()
  }
  if (focus.node === undefined) return
  canvas.globalAlpha = 1
  canvas.lineWidth = 2
  canvas.strokeStyle = colors.text
  traceNodes(canvas, scene, [focus.node])
  canvas.stroke()
}

const traceNodes = (
  canvas: CanvasRenderingContext2D,
  { graph, layout, camera, width, height }: Scene,
  nodes: readonly number[],
): void => {
  const size = nodeScale(camera)
  canvas.beginPath()
  for (const node of nodes) {
    const radius = nodeRadius(graph.nodes[node]?.facts ?? 0) * size
    const [x, y] = [(layout.x[node] ?? 0) * camera.scale + camera.x, (layout.y[node] ?? 0) * camera.scale + camera.y]
    if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue
    canvas.moveTo(x + radius, y)
    canvas.arc(x, y, radius, 0, 2 * Math.PI)
  }
}

const CHOSEN = 1e9 // above every number of facts
const EMPHASIZED = 1e6

const drawLabels = (canvas: CanvasRenderingContext2D, scene: Scene): void => {
  const { graph, layout, camera, focus, colors, font, widthOf } = scene
  const size = nodeScale(camera)
  const isFocused = focus.node !== undefined || focus.found !== undefined
  const candidates = graph.nodes.flatMap(({ name, facts }, node): LabelCandidate[] => {
    if (isFocused && !isBright(node, focus)) return []
    const emphasis = node === focus.node ? CHOSEN : isFocused ? EMPHASIZED : 0
    return [
      {
        node,
        x: (layout.x[node] ?? 0) * camera.scale + camera.x,
        y: (layout.y[node] ?? 0) * camera.scale + camera.y,
        radius: nodeRadius(facts) * size,
        width: widthOf(shortLabel(name)),
        weight: facts + emphasis,
      },
    ]
  })
  canvas.globalAlpha = 1
  canvas.font = font
  canvas.textBaseline = 'middle'
  canvas.lineJoin = 'round'
  canvas.lineWidth = 3
  canvas.strokeStyle = colors.background
  canvas.fillStyle = colors.text
  const most = Math.max(FEWEST_LABELS, Math.round((scene.width * scene.height) / PIXELS_PER_LABEL))
  for (const { node, x, y } of placeLabels(candidates, scene, most)) {
    const label = shortLabel(graph.nodes[node]?.name ?? '')
    canvas.strokeText(label, x, y)
    canvas.fillText(label, x, y)
  }
}

/** Measures labels once each. */
export const createLabelRuler = (canvas: CanvasRenderingContext2D, element: HTMLElement) => {
  const font = `${FONT_SIZE}px ${getComputedStyle(element).fontFamily}`
  const known = new Map<string, number>()
  return {
    font,
    widthOf: (label: string): number => {
      const width = known.get(label)
      if (width !== undefined) return width
      canvas.font = font
      const measured = Math.ceil(canvas.measureText(label).width) + 2
      known.set(label, measured)
      return measured
    },
  }
}
