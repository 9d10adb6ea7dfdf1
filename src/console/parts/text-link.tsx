import type { ComponentChildren } from 'preact'

export interface TextLinkProps {
  readonly href: string // from a text of a server
  readonly children: ComponentChildren
}

const ALLOWED: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:'])

/** Whether a link that a server wrote may be followed: never one that runs code or reads a file. */
export const isSafeLink = (href: string): boolean => URL.canParse(href) && ALLOWED.has(new URL(href).protocol)

/** A link that a server wrote; where it may not be followed, its text with the address. */
export const TextLink = ({ href, children }: TextLinkProps) =>
  isSafeLink(href) ? (
    <a href={href} target="_blank" rel="noreferrer noopener" title={href}>
      {children}
    </a>
  ) : (
    <span title={href}>{children}</span>
  )
