/** What the pointer does to nodes; the functions of the latest render. */
export interface PointerHandlers {
  readonly current: {
    readonly onHover: (node: number | undefined) => void
    readonly onOpen: (node: number) => void
  }
}

const CLICK_PIXELS = 4 // a pointer that moves further drags the picture

interface PointerActions {
  readonly find: (x: number, y: number) => number | undefined
  readonly drag: (x: number, y: number) => void
  readonly zoom: (factor: number, x: number, y: number) => void
  readonly handlers: PointerHandlers
}

/** Hovers, drags, zooms and opens with the pointer. */
export const followPointer = (element: HTMLElement, signal: AbortSignal, actions: PointerActions): void => {
  let from: { readonly x: number; readonly y: number } | undefined // where the pointer went down, or was last
  let moved = 0
  let hovered: number | undefined
  const hover = (node: number | undefined): void => {
    if (node === hovered) return
    hovered = node
    element.style.cursor = node === undefined ? 'grab' : 'pointer'
    actions.handlers.current.onHover(node)
  }
  const on = <Name extends keyof HTMLElementEventMap>(name: Name, run: (event: HTMLElementEventMap[Name]) => void) =>
    element.addEventListener(name, run, { signal, passive: false })
  on('pointerdown', event => {
    element.setPointerCapture(event.pointerId)
    from = { x: event.offsetX, y: event.offsetY }
    moved = 0
  })
  on('pointermove', ({ offsetX: x, offsetY: y }) => {
    if (!from) return hover(actions.find(x, y))
    moved += Math.hypot(x - from.x, y - from.y)
    if (moved > CLICK_PIXELS) actions.drag(x - from.x, y - from.y)
    from = { x, y }
  })
  on('pointerup', ({ offsetX, offsetY }) => {
    const node = moved <= CLICK_PIXELS ? actions.find(offsetX, offsetY) : undefined
    from = undefined
    if (node !== undefined) actions.handlers.current.onOpen(node)
  })
  on('pointercancel', () => {
    from = undefined
  })
  on('pointerleave', () => hover(undefined))
  on('wheel', event => {
    event.preventDefault()
    actions.zoom(1.0015 ** -event.deltaY, event.offsetX, event.offsetY)
  })
}
