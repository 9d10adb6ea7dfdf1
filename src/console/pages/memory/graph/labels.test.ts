import { expect, test } from 'vitest'
import { fitCamera, nodeUnder, revealNode, zoomCamera } from './camera.ts'
import { createLinkIndex, foundNodes } from './graph-index.ts'
import { type LabelCandidate, placeLabels } from './labels.ts'
import { type GraphLayout, startLayout } from './layout.ts'

const AREA = { width: 400, height: 300 }
const candidate = (node: number, x: number, y: number, weight: number): LabelCandidate => ({
  node,
  x,
  y,
  weight,
  radius: 4,
  width: 60,
})

test('labels do not overlap, and the important ones are placed first', () => {
  const crowd = Array.from({ length: 400 }, (_, at) => candidate(at, (at * 37) % 400, (at * 91) % 300, at))
  const placed = placeLabels(crowd, AREA, 999)
  expect(placed.length).toBeGreaterThan(20)
  expect(placed[0]?.node).toBe(399)
  for (const [at, a] of placed.entries())
    for (const b of placed.slice(at + 1)) expect(Math.abs(a.x - b.x) < 60 && Math.abs(a.y - b.y) < 14).toBe(false)
  expect(placeLabels(crowd, AREA, 5)).toHaveLength(5)
})

test('nodes outside of the picture get no label; one at the border gets it inside', () => {
  expect(placeLabels([candidate(0, -50, 10, 1), candidate(1, 10, 900, 1)], AREA, 9)).toEqual([])
  expect(placeLabels([candidate(0, 395, 100, 1)], AREA, 9)[0]?.x).toBeLessThan(340)
})

const graph = (count: number) => ({
  nodes: Array.from({ length: count }, (_, at) => ({
    id: String(at),
    name: `Node ${at}`,
    group: 'g',
    facts: at % 7,
    community: at % 2,
  })),
  links: Array.from({ length: count - 1 }, (_, at) => ({ source: at, target: Math.floor(at / 3) + 1, facts: 1 })),
  communities: ['a', 'b'],
  total: count,
})

const arrange = (count: number) =>
  new Promise<GraphLayout>(resolve => void startLayout(graph(count), (layout, isDone) => isDone && resolve(layout)))

test('a graph looks the same each time, and its nodes are apart', async () => {
  const [one, two] = [await arrange(120), await arrange(120)]
  expect(two).toEqual(one)
  for (let a = 0; a < 120; a++)
    for (let b = a + 1; b < 120; b++)
      expect(Math.hypot((one.x[a] ?? 0) - (one.x[b] ?? 0), (one.y[a] ?? 0) - (one.y[b] ?? 0))).toBeGreaterThan(2)
})

test('the camera shows everything, keeps the place under the pointer, and finds nodes', async () => {
  const layout = await arrange(50)
  const camera = fitCamera(layout, AREA)
  const at = (node: number, { scale, x, y } = camera) => ({
    x: (layout.x[node] ?? 0) * scale + x,
    y: (layout.y[node] ?? 0) * scale + y,
  })
  for (let node = 0; node < 50; node++) {
    expect(at(node).x).toBeGreaterThanOrEqual(39)
    expect(at(node).y).toBeLessThanOrEqual(261)
  }
  const zoomed = zoomCamera(camera, 2, at(3).x, at(3).y)
  expect(at(3, zoomed).x).toBeCloseTo(at(3).x)
  expect(nodeUnder(camera, layout, new Array(50).fill(4), at(7))).toBe(7)
  expect(nodeUnder(camera, layout, new Array(50).fill(4), { x: -100, y: -100 })).toBeUndefined()
  const moved = revealNode({ scale: 1, x: 5000, y: 5000 }, layout, 7, AREA)
  expect(at(7, moved)).toMatchObject({ x: expect.closeTo(200), y: expect.closeTo(150) })
  expect(fitCamera({ x: new Float32Array(), y: new Float32Array() }, AREA)).toMatchObject({ scale: 1 })
})

test('neighbours and names are found', () => {
  expect([...createLinkIndex(graph(9)).neighboursOf(1)].toSorted()).toEqual([0, 1, 2])
  expect(foundNodes(graph(20), '')).toBeUndefined()
  expect([...(foundNodes(graph(20), 'node 1', 0) ?? [])]).toEqual([10, 12, 14, 16, 18])
})
