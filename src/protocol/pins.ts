/** The pins of one server, for operators. */
export interface PinStatus {
  readonly pinned: number // tools with an approved definition, without those of single principals
  readonly quarantined: number // definitions that wait for an approval
  readonly fault?: string | undefined // why the pins cannot be read: then no tool is listed or called
}

/** One definition of a tool. */
export interface PinnedTool {
  readonly server: string
  readonly name: string
  readonly hash: string
}

/** A tool that is neither listed nor called until its definition is approved. */
export interface QuarantinedTool extends PinnedTool {
  readonly since: number // Unix time in milliseconds
  readonly isNew: boolean // no definition of it was approved before
  readonly principals: readonly string[] // whose lists show it; empty: it is in the list for all callers
  readonly changes: readonly DefinitionChange[]
  readonly definition?: string | undefined // JSON; undefined: it is too large to be stored
  readonly flags: readonly ToolFlag[]
}

/** One member of a definition that differs from the approved one. */
export interface DefinitionChange {
  readonly at: string // `description`, or the path of a member of a schema, like `inputSchema.properties.path`
  readonly before?: string | undefined // undefined: it was added
  readonly after?: string | undefined // undefined: it was removed
}

/** A rule of docs/tool-safety.md that a tool breaks. */
export interface ToolFlag {
  readonly rule: ToolRule
  readonly at: string // the member that breaks it
  readonly detail: string // what was found there, without hidden characters
}

/** A flag of one tool. */
export interface FlaggedTool {
  readonly server: string
  readonly tool: string
  readonly flag: ToolFlag
}

/** The flag as one line. */
export const flagText = ({ server, tool, flag: { rule, at, detail } }: FlaggedTool): string =>
  `${server}/${tool}: ${TOOL_RULES[rule] ?? rule} (${rule}), in its ${at}: ${detail}`

/** The rules by name, with what each one finds. */
export const TOOL_RULES = {
  'hidden-text': 'characters that people do not see',
  instructions: 'instructions to the model beyond the tool itself',
  'other-tools': 'rules for the tools of another server',
  shadowing: 'the name of a tool of another server',
} as const

export type ToolRule = keyof typeof TOOL_RULES
