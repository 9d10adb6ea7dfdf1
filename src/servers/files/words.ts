/** What every tool of this server promises. */
export const READ_ONLY = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
} as const

/** An argument that several tools share. */
export const INCLUDE_IGNORED = {
  type: 'boolean',
  default: false,
  description: 'Also look into node_modules folders, and .git where dot files are shown; both are left out otherwise',
} as const
