import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { formatCount } from './format.ts'

export interface TabItem<Id extends string> {
  readonly id: Id
  readonly label: string
  readonly count?: number | undefined
}

export interface TabsProps<Id extends string> {
  readonly label: string // what the tabs choose from
  readonly tabs: readonly TabItem<Id>[]
  readonly value: Id
  readonly onChange: (id: Id) => void
  readonly actions?: ComponentChildren // at the right end of the row
  readonly children?: ComponentChildren // the content of the chosen tab
}

/** A row of tabs and the content of the chosen one; the arrow keys move between them. */
export const Tabs = <Id extends string>({ label, tabs, value, onChange, actions, children }: TabsProps<Id>) => {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)

  const [isCut, setCut] = useState(false)

  // In a narrow window the row scrolls.
  useLayoutEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [value])
  const updateCut = (): void => {
    const { scrollLeft = 0, clientWidth = 0, scrollWidth = 0 } = list.current ?? {}
    setCut(scrollLeft + clientWidth < scrollWidth - 1)
  }
  useLayoutEffect(updateCut) // counts of tabs change their widths
  useLayoutEffect(() => {
    const observer = new ResizeObserver(updateCut)
    if (list.current) observer.observe(list.current)
    return () => observer.disconnect()
  }, [])

  const move = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(tab => tab.id === value)
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: (at + 1) % tabs.length,
      ArrowLeft: (at - 1 + tabs.length) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }
    const next = targets[event.key]
    const tab = next === undefined ? undefined : tabs[next]
    if (!tab || next === undefined) return
    event.preventDefault()
    onChange(tab.id)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus()
  }

  return (
    <div class="tabs">
      <div class="tabs-row">
        <div
          ref={list}
          role="tablist"
          aria-label={label}
          class={`tabs-list${isCut ? ' is-cut' : ''}`}
          onScroll={updateCut}
        >
          {tabs.map(tab => (
            <button
              key={tab.id}
              type="button"
              role="tab"
              id={`${id}-${tab.id}`}
              aria-selected={tab.id === value}
              aria-controls={children === undefined ? undefined : `${id}-panel`}
              tabIndex={tab.id === value ? 0 : -1}
              onClick={() => onChange(tab.id)}
              onKeyDown={move}
            >
              {tab.label}
              {tab.count !== undefined && <span class="tab-count">{formatCount(tab.count)}</span>}
            </button>
          ))}
        </div>
        {actions && <div class="tabs-actions">{actions}</div>}
      </div>
      {children !== undefined && (
        <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${value}`} tabIndex={0} class="tabs-panel">
          {children}
        </div>
      )}
    </div>
  )
}
