/** The dated revisions, oldest first. Their rules for transports and tasks are below; those for payloads are in eras/. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const

export type Revision = (typeof REVISIONS)[number]
type Era = 'legacy' | 'modern'

/** How a client of a revision says that it wants tasks: in each call, by an extension that it declares, or not at all. */
type TaskSupport = 'none' | 'param' | 'extension'

interface RevisionRules {
  readonly era: Era
  readonly priming: boolean // an SSE response begins with an id and empty data (older parsers fail on it)
  readonly versionHeader: boolean // MCP-Protocol-Version on requests after the handshake
  readonly plainAnswers: boolean // a POST may be answered with JSON although the client accepts events, too
  readonly tasks: TaskSupport
}

const RULES: Readonly<Record<Revision, RevisionRules>> = {
  // Its clients over Streamable HTTP read only events.
  '2024-11-05': { era: 'legacy', priming: false, versionHeader: false, plainAnswers: false, tasks: 'none' },
  '2025-03-26': { era: 'legacy', priming: false, versionHeader: false, plainAnswers: true, tasks: 'none' },
  '2025-06-18': { era: 'legacy', priming: false, versionHeader: true, plainAnswers: true, tasks: 'none' },
  '2025-11-25': { era: 'legacy', priming: true, versionHeader: true, plainAnswers: true, tasks: 'param' },
  '2026-07-28': { era: 'modern', priming: false, versionHeader: true, plainAnswers: true, tasks: 'extension' },
}

export const OLDEST: Revision = '2024-11-05'
export const MODERN: Revision = '2026-07-28'
export const NEWEST_LEGACY: Revision = '2025-11-25'

/** All revisions, newest first, as `supportedVersions` and error -32022 list them. */
export const SERVED: readonly Revision[] = [...REVISIONS].reverse()

export const transportRulesOf = (revision: Revision): Omit<RevisionRules, 'tasks'> => RULES[revision]

export const isRevision = (text: string | undefined): text is Revision =>
  text !== undefined && (REVISIONS as readonly string[]).includes(text)

export const isModern = (revision: Revision): boolean => RULES[revision].era === 'modern'

export const taskSupportOf = (revision: Revision): TaskSupport => RULES[revision].tasks
