import type { GraphLayout } from './layout.ts'

/** What part of the graph is shown: a place of the graph is at `place * scale + offset` on the screen. */
export interface GraphCamera {
  readonly scale: number
  readonly x: number
  readonly y: number
}

interface ViewSize {
  readonly width: number
  readonly height: number
}

const MARGIN = 40
const MOST_SCALE = 6
const LEAST_SCALE = 0.05
const LARGEST_FIT = 2 // a small graph is not blown up

/** Shows the whole graph. */
export const fitCamera = ({ x, y }: GraphLayout, { width, height }: ViewSize): GraphCamera => {
  if (x.length === 0 || width === 0) return { scale: 1, x: width / 2, y: height / 2 }
  const [left, right] = [x.reduce((a, b) => Math.min(a, b)), x.reduce((a, b) => Math.max(a, b))]
  const [top, bottom] = [y.reduce((a, b) => Math.min(a, b)), y.reduce((a, b) => Math.max(a, b))]
  const scale = Math.min(
    LARGEST_FIT,
    (width - 2 * MARGIN) / Math.max(1, right - left),
    (height - 2 * MARGIN) / Math.max(1, bottom - top),
  )
  const bounded = Math.max(LEAST_SCALE, scale)
  return {
    scale: bounded,
    x: width / 2 - ((left + right) / 2) * bounded,
    y: height / 2 - ((top + bottom) / 2) * bounded,
  }
}

/** Zooms; the place under the pointer stays under it. */
export const zoomCamera = (camera: GraphCamera, factor: number, x: number, y: number): GraphCamera => {
  const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, camera.scale * factor))
  const by = scale / camera.scale
  return { scale, x: x - (x - camera.x) * by, y: y - (y - camera.y) * by }
}

export const moveCamera = (camera: GraphCamera, x: number, y: number): GraphCamera => ({
  ...camera,
  x: camera.x + x,
  y: camera.y + y,
})

/** Brings a node to the middle, unless it can be seen already. */
export const revealNode = (
  camera: GraphCamera,
  { x, y }: GraphLayout,
  node: number,
  { width, height }: ViewSize,
): GraphCamera => {
  const [atX, atY] = [(x[node] ?? 0) * camera.scale + camera.x, (y[node] ?? 0) * camera.scale + camera.y]
  const isSeen = atX >= MARGIN && atX <= width - MARGIN && atY >= MARGIN && atY <= height - MARGIN
  return isSeen ? camera : moveCamera(camera, width / 2 - atX, height / 2 - atY)
}

/** Nodes keep about their size when the graph is zoomed: they grow slower than the distances. */
export const nodeScale = ({ scale }: GraphCamera): number => Math.min(1.6, Math.max(0.45, scale ** 0.6))

const REACH = 6 // pixels around a node that also count

/** The node under the pointer. */
export const nodeUnder = (
  camera: GraphCamera,
  { x, y }: GraphLayout,
  radii: ArrayLike<number>,
  at: { readonly x: number; readonly y: number },
): number | undefined => {
  const size = nodeScale(camera)
  let [best, nearest] = [undefined as number | undefined, Number.POSITIVE_INFINITY]
  for (let node = 0; node < x.length; node++) {
    const [byX, byY] = [
      (x[node] ?? 0) * camera.scale + camera.x - at.x,
      (y[node] ?? 0) * camera.scale + camera.y - at.y,
    ]
    const distance = Math.hypot(byX, byY) - (radii[node] ?? 0) * size
    if (distance <= REACH && distance < nearest) [best, nearest] = [node, distance]
  }
  return best
}
