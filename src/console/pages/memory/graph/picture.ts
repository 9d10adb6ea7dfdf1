import type { MemoryGraph } from '../../../../protocol/memory-views.ts'
import { fitCamera, type GraphCamera, moveCamera, nodeUnder, revealNode, zoomCamera } from './camera.ts'
import { createLabelRuler, drawGraph, type GraphFocus, readColors } from './draw.ts'
import { type GraphLayout, nodeRadius, startLayout } from './layout.ts'
import { followPointer, type PointerHandlers } from './pointer.ts'

const REDRAW_MS = 250 // while the graph is being arranged
const INPUT_MS = 150 // after a key or a click, for which the arrangement waits

/** The arrangement of a graph is kept, so that it is there at once when the user comes back. */
const arranged = new WeakMap<MemoryGraph, GraphLayout>()

export type GraphPicture = ReturnType<typeof createPicture>

/** Draws a graph into a canvas, and follows the pointer. */
export const createPicture = (
  box: HTMLElement,
  element: HTMLCanvasElement,
  graph: MemoryGraph,
  handlers: PointerHandlers,
) => {
  const canvas = element.getContext('2d', { alpha: false })
  if (!canvas) throw new Error('This browser has no canvas')
  const ruler = createLabelRuler(canvas, box)
  const radii = graph.nodes.map(({ facts }) => nodeRadius(facts))
  const abort = new AbortController()
  const { signal } = abort
  let colors = readColors(box)
  let layout = arranged.get(graph)
  let camera: GraphCamera | undefined
  let focus: GraphFocus = { node: undefined, neighbours: new Set(), found: undefined }
  let size = { width: 0, height: 0 }
  let isMoved = false // by the user: it is not fitted again
  let frame = 0

  const draw = (): void => {
    frame = 0
    if (!layout || size.width === 0) return
    camera ??= fitCamera(layout, size)
    drawGraph(canvas, { graph, layout, camera, focus, colors, ...size, ...ruler })
    element.dataset.scale = camera.scale.toFixed(3)
  }
  const schedule = (): void => {
    frame ||= requestAnimationFrame(draw)
  }
  const move = (next: GraphCamera): void => {
    isMoved = true
    camera = next
    schedule()
  }
  const resize = (): void => {
    const { clientWidth: width, clientHeight: height } = box
    size = { width, height }
    element.width = width * devicePixelRatio
    element.height = height * devicePixelRatio
    canvas.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0)
    if (!isMoved) camera = undefined
    draw() // at once: a resized canvas is empty
  }
  const resized = new ResizeObserver(resize)
  resized.observe(box)

  let inputAt = Number.NEGATIVE_INFINITY
  for (const name of ['keydown', 'pointerdown'])
    addEventListener(name, ({ timeStamp }) => (inputAt = timeStamp), { signal, capture: true })
  let drawnAt = 0
  const onStep = (next: GraphLayout, isDone: boolean): void => {
    layout = next
    if (!isDone && performance.now() - drawnAt < REDRAW_MS) return
    if (isDone) {
      arranged.set(graph, next)
      element.dataset.arranged = 'true'
    }
    drawnAt = performance.now()
    if (!isMoved) camera = undefined
    schedule()
  }
  const stopLayout = layout ? () => {} : startLayout(graph, onStep, () => performance.now() - inputAt < INPUT_MS)
  if (arranged.has(graph)) element.dataset.arranged = 'true'

  followPointer(element, signal, {
    find: (x, y) => (layout && camera ? nodeUnder(camera, layout, radii, { x, y }) : undefined),
    drag: (x, y) => camera && move(moveCamera(camera, x, y)),
    zoom: (factor, x, y) => camera && move(zoomCamera(camera, factor, x, y)),
    handlers,
  })
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const readTheme = (): void => {
    colors = readColors(box)
    schedule()
  }
  dark.addEventListener('change', readTheme, { signal })

  return {
    readTheme,
    setFocus: (next: GraphFocus): void => {
      focus = next
      schedule()
    },
    reveal: (node: number): void => {
      if (layout && camera) camera = revealNode(camera, layout, node, size)
      schedule()
    },
    /** 0 shows all of it. */
    zoom: (factor: number): void => {
      if (factor === 0 || !camera) {
        camera = undefined
        isMoved = false
        return schedule()
      }
      move(zoomCamera(camera, factor, size.width / 2, size.height / 2))
    },
    close: (): void => {
      stopLayout()
      resized.disconnect()
      cancelAnimationFrame(frame)
      abort.abort()
    },
  }
}
