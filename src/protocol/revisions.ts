/** The dated revisions, oldest first, and the manners of each that are not about payloads (those are eras/). */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const

export type Revision = (typeof REVISIONS)[number]
type Era = 'legacy' | 'modern'

interface Manners {
  readonly era: Era
  readonly priming: boolean // an SSE reply opens with an id and empty data (older parsers choke on it)
  readonly versionHeader: boolean // MCP-Protocol-Version on requests after the handshake
  readonly plainAnswers: boolean // a POST may be answered with JSON though its client takes events, too
}

const MANNERS: Readonly<Record<Revision, Manners>> = {
  // Its clients know Streamable HTTP from servers that always answer with an event, and read nothing else.
  '2024-11-05': { era: 'legacy', priming: false, versionHeader: false, plainAnswers: false },
  '2025-03-26': { era: 'legacy', priming: false, versionHeader: false, plainAnswers: true },
  '2025-06-18': { era: 'legacy', priming: false, versionHeader: true, plainAnswers: true },
  '2025-11-25': { era: 'legacy', priming: true, versionHeader: true, plainAnswers: true },
  '2026-07-28': { era: 'modern', priming: false, versionHeader: true, plainAnswers: true },
}

export const OLDEST: Revision = '2024-11-05'
export const MODERN: Revision = '2026-07-28'
export const NEWEST_LEGACY: Revision = '2025-11-25'

/** Every revision we serve, newest first, as `supportedVersions` and `-32022` list them. */
export const SERVED: readonly Revision[] = [...REVISIONS].reverse()

export const transportRulesOf = (revision: Revision): Manners => MANNERS[revision]

export const isRevision = (text: string | undefined): text is Revision =>
  text !== undefined && (REVISIONS as readonly string[]).includes(text)

export const isModern = (revision: Revision): boolean => MANNERS[revision].era === 'modern'
