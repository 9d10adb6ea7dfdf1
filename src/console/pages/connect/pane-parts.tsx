import type { ComponentChildren } from 'preact'
import { CopyButton } from '../../parts/copy-button.tsx'
import { isOwner } from '../../session.ts'

/** Why a viewer cannot press the buttons of this page. */
export const NEEDS_OWNER =
  'Only the owner of the gateway can do this. Open the link that "dragoman console" prints, or sign in with an owner’s token.'

/** The title of a button that needs the owner; undefined if this user is the owner. */
export const ownerTitle = (): string | undefined => (isOwner.value ? undefined : NEEDS_OWNER)

export interface PaneSectionProps {
  readonly title: string
  readonly actions?: ComponentChildren // at the right end of the title
  readonly children: ComponentChildren
}

/** A titled part of a details pane. */
export const PaneSection = ({ title, actions, children }: PaneSectionProps) => (
  <section class="connect-pane-section">
    <header>
      <h3>{title}</h3>
      {actions}
    </header>
    {children}
  </section>
)

export type FactRow = readonly [name: string, value: ComponentChildren]

/** Names and values, one below the other; values that are undefined are left out. */
export const Facts = ({ rows }: { readonly rows: readonly FactRow[] }) => (
  <dl class="connect-facts">
    {rows
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

/** A path, with a button that copies it. */
export const PathText = ({ path }: { readonly path: string }) => (
  <span class="connect-path">
    <code>{path}</code>
    <CopyButton text={path} label="Copy the path" />
  </span>
)
