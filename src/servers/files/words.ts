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
  description: 'Also look into .git and node_modules folders, which are left out otherwise',
} as const
