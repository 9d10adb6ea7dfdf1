import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

export interface PageFrameProps {
  readonly title: string
  readonly detail?: string | undefined // what is selected, for the title of the tab
  readonly toolbar?: ComponentChildren // beside the title: filters, search, buttons
  readonly children: ComponentChildren
}

/** The frame of each page: its title, a toolbar, and the content, which fills the rest of the window. */
export const PageFrame = ({ title, detail, toolbar, children }: PageFrameProps) => {
  useEffect(() => {
    document.title = `${detail === undefined ? title : `${detail} · ${title}`} · Dragoman`
  }, [title, detail])
  return (
    <>
      <header class="page-head">
        <h1>{title}</h1>
        {toolbar && <div class="toolbar">{toolbar}</div>}
      </header>
      <div class="page-body">{children}</div>
    </>
  )
}

/** Rows in place of a list that is being loaded: they have its height, so that nothing moves. */
export const SkeletonRows = ({ count = 6 }: { readonly count?: number }) => (
  <div class="skeleton-rows" aria-hidden="true">
    {Array.from({ length: count }, (_, at) => (
      <div key={at} class="skeleton-row">
        <span />
      </div>
    ))}
  </div>
)
