/** A node on the screen that wants a label. Coordinates in pixels. */
export interface LabelCandidate {
  readonly node: number
  readonly x: number
  readonly y: number
  readonly radius: number
  readonly width: number // of its text
  readonly weight: number // the more important comes first
}

/** A label that does not overlap another; its text begins at `x` and its middle is at `y`. */
export interface PlacedLabel {
  readonly node: number
  readonly x: number
  readonly y: number
}

interface LabelArea {
  readonly width: number
  readonly height: number
}

const HEIGHT = 14
const GAP = 3
const CELL = 64 // pixels; boxes are compared with those of the same cells only

interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

const overlaps = (a: Box, b: Box): boolean =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom

const ROW = 4096 // cells; a number as the key is several times as fast as a text

const cellsOf = ({ left, top, right, bottom }: Box): number[] => {
  const cells: number[] = []
  for (let x = Math.floor(left / CELL); x <= Math.floor(right / CELL); x++)
    for (let y = Math.floor(top / CELL); y <= Math.floor(bottom / CELL); y++) cells.push(y * ROW + x)
  return cells
}

/** The places of a label, the best first: right of its node, left of it, below and above. */
const placesFor = ({ x, y, radius, width }: LabelCandidate): readonly (readonly [x: number, y: number])[] => [
  [x + radius + GAP, y],
  [x - radius - GAP - width, y],
  [x - width / 2, y + radius + HEIGHT / 2 + 1],
  [x - width / 2, y - radius - HEIGHT / 2 - 1],
]

/** Places as many labels as fit without an overlap, the most important first; those outside of the area are left out. */
export const placeLabels = (
  candidates: readonly LabelCandidate[],
  { width, height }: LabelArea,
  most: number,
): readonly PlacedLabel[] => {
  const taken = new Map<number, Box[]>()
  const placed: PlacedLabel[] = []
  const isFree = (box: Box): boolean =>
    box.left >= 0 &&
    box.right <= width &&
    box.top >= 0 &&
    box.bottom <= height &&
    cellsOf(box).every(cell => !taken.get(cell)?.some(other => overlaps(box, other)))
  for (const candidate of candidates.toSorted((a, b) => b.weight - a.weight || a.node - b.node)) {
    if (placed.length >= most) break
    const { x, y, radius } = candidate
    if (x < -radius || y < -radius || x > width + radius || y > height + radius) continue
    for (const [left, middle] of placesFor(candidate)) {
      const box = { left, top: middle - HEIGHT / 2, right: left + candidate.width, bottom: middle + HEIGHT / 2 }
      if (!isFree(box)) continue
      for (const cell of cellsOf(box)) taken.set(cell, [...(taken.get(cell) ?? []), box])
      placed.push({ node: candidate.node, x: left, y: middle })
      break
    }
  }
  return placed
}
