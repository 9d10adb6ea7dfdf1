import type { RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useShortcuts } from '../keys.ts'

const OVERSCAN = 8
const FIRST_ROWS = 40 // before the height of the list is known

export interface VirtualRows {
  readonly scroller: RefObject<HTMLDivElement | null>
  readonly from: number
  readonly to: number // exclusive
  readonly width: number // of the list, in pixels; 0 before the first layout
  /** Scrolls as little as needed to show a row. */
  readonly reveal: (index: number) => void
}

/** Which rows of a long list are rendered: those that can be seen, and a few around them. */
export const useVirtualRows = (
  count: number,
  rowHeight: number,
  headHeight = 0,
  onRange?: (from: number, to: number) => void, // the rows in sight
): VirtualRows => {
  const report = useRef(onRange)
  report.current = onRange
  const scroller = useRef<HTMLDivElement | null>(null)
  const [seen, setSeen] = useState({ from: 0, to: FIRST_ROWS, width: 0 })

  useLayoutEffect(() => {
    const box = scroller.current
    if (!box) return
    const measure = (): void => {
      const from = Math.max(0, Math.floor(box.scrollTop / rowHeight) - OVERSCAN)
      const to = Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + OVERSCAN
      const width = box.clientWidth
      report.current?.(Math.floor(box.scrollTop / rowHeight), to - OVERSCAN)
      setSeen(before =>
        before.from === from && before.to === to && before.width === width ? before : { from, to, width },
      )
    }
    measure()
    const resized = new ResizeObserver(measure)
    resized.observe(box)
    box.addEventListener('scroll', measure, { passive: true })
    return () => {
      resized.disconnect()
      box.removeEventListener('scroll', measure)
    }
  }, [rowHeight])

  const reveal = (index: number): void => {
    const box = scroller.current
    if (!box || index < 0) return
    const top = index * rowHeight
    const bottom = top + rowHeight + headHeight
    if (top < box.scrollTop) box.scrollTop = top
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight
  }
  const to = Math.min(count, seen.to)
  return { scroller, from: Math.min(seen.from, to), to, width: seen.width, reveal }
}

interface RowKeysOptions {
  readonly rows: VirtualRows
  readonly count: number
  readonly rowHeight: number
  readonly selected: number // -1: none
  readonly onSelect: (index: number) => void
  readonly onOpen?: ((index: number) => void) | undefined
  readonly isMain: boolean // `j` and `k` move in it, wherever the focus is
}

/** Moves the selection of a list by keys; returns the handler for the element that has the focus. */
export const useRowKeys = ({ rows, count, rowHeight, selected, onSelect, onOpen, isMain }: RowKeysOptions) => {
  const select = (index: number): void => {
    const next = Math.max(0, Math.min(count - 1, index))
    if (count === 0) return
    rows.reveal(next)
    onSelect(next)
  }
  const step = (by: number): void => {
    rows.scroller.current?.focus({ preventScroll: true })
    select(selected < 0 ? 0 : selected + by)
  }
  useShortcuts(
    'Rows',
    isMain
      ? [
          { keys: 'j', label: 'Next row', run: () => step(1) },
          { keys: 'k', label: 'Previous row', run: () => step(-1) },
        ]
      : [],
  )
  return (event: KeyboardEvent): void => {
    if (event.target !== rows.scroller.current || event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.floor((rows.scroller.current?.clientHeight ?? 0) / rowHeight) - 1)
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => select(selected + 1),
      ArrowUp: () => select(selected < 0 ? count - 1 : selected - 1),
      PageDown: () => select(selected + page),
      PageUp: () => select(selected - page),
      Home: () => select(0),
      End: () => select(count - 1),
      ...(onOpen && selected >= 0 && { Enter: () => onOpen(selected) }),
    }
    const move = moves[event.key]
    if (!move) return
    event.preventDefault()
    move()
  }
}
