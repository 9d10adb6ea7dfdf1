// The configuration: `/admin/config`. Types only: the console imports this file, too.

/** Where a value is in the file: keys and indexes from the root. */
export type ConfigValuePath = readonly (string | number)[]

/** What a key of the file holds. A literal secret in it is written as `${hidden:<id>}`, and kept where that is written back. */
export type ConfigObject = Readonly<Record<string, unknown>>

/** One error in the configuration; line and column count from 1. */
export interface ConfigIssue {
  readonly path: ConfigValuePath
  readonly message: string
  readonly line?: number | undefined
  readonly column?: number | undefined
}

/** A server, workspace, policy or group of settings that differs; values are given only if they cannot be secrets. */
export interface ConfigChange {
  readonly name: string
  readonly kind: 'added' | 'removed' | 'changed'
  readonly details: readonly { readonly at: string; readonly from?: string; readonly to?: string }[]
}

/** What another configuration changes. */
export interface ConfigPlan {
  readonly servers: readonly ConfigChange[]
  readonly workspaces: readonly ConfigChange[]
  readonly policies: readonly ConfigChange[]
  readonly settings: readonly ConfigChange[] // take effect after a restart only
}

/** What a plan means for the clients of one workspace. */
export interface AffectedWorkspace {
  readonly name: string
  readonly effect: 'ends' | 'lists_change' // sessions end with their last call, or are told that their lists have changed
  readonly sessions: number // open now, channels included
}

/** `GET /admin/config` */
export interface ConfigDocument {
  readonly file?: string | undefined // undefined: the gateway runs without one
  readonly suggestedFile?: string | undefined // where a new one belongs
  readonly note?: string | undefined // about the file, for example that another program uses it, too
  readonly etag: string // of its text
  readonly text?: string | undefined // owners only
  readonly value: ConfigObject // empty if the text is not JSON
  readonly isBuiltIn: boolean // `"mcpServers": "default"`, which `value` has written out
  readonly issues: readonly ConfigIssue[] // of the file as it is now
  readonly warnings: readonly string[]
  readonly edit: { readonly isAllowed: boolean; readonly reason?: string | undefined }
  readonly rejected?: { readonly reason: string; readonly at: number } | undefined // of the last reload
  readonly pending?: ConfigPlan | undefined // what the file says and the gateway does not do yet
  readonly running: { readonly host: string; readonly port: number }
}

/** One change of the file. `before` is the value that its author saw: it tells whether another change is in the way. */
export type ConfigEdit =
  | { readonly kind: 'set'; readonly path: readonly string[]; readonly value: unknown; readonly before?: unknown }
  | { readonly kind: 'remove'; readonly path: readonly string[]; readonly before?: unknown }
  | { readonly kind: 'rename'; readonly path: readonly string[]; readonly to: string }

/** Edits of a text; without a text, of the file. */
export interface ConfigDraft {
  readonly text?: string | undefined
  readonly edits?: readonly ConfigEdit[] | undefined
}

/** `POST /admin/config/check`: a draft applied to the file as it is now. */
export interface ConfigCheck {
  readonly etag: string // of the file
  readonly text: string
  readonly value?: ConfigObject | undefined // undefined: the text is not JSON
  readonly issues: readonly ConfigIssue[]
  readonly warnings: readonly string[]
  readonly plan?: ConfigPlan | undefined // undefined: the draft has issues
  readonly affected: readonly AffectedWorkspace[]
}

/** `PUT /admin/config` with the header If-Match: the draft is written and the gateway reads the file again. */
export interface ConfigSaved {
  readonly file: string
  readonly etag: string
  readonly backup?: string | undefined // the path of the text before
  readonly outcome: 'applied' | 'rejected' | 'written' // `rejected`: the previous configuration stays in use
  readonly reason?: string | undefined // why it was not applied
  readonly plan?: ConfigPlan | undefined // what has changed
}

/** The details of the refusal with status 412: the file has changed since the author read it. */
export interface ConfigConflict {
  readonly etag: string // of the file as it is now
  readonly conflicts: readonly EditConflict[] // edits of values that were changed to something else
}

export interface EditConflict {
  readonly path: readonly string[]
  readonly now: unknown // absent: removed
  readonly wanted: unknown
}

/** `POST /admin/config/paste`: the servers that a pasted text describes. */
export interface PastedServers {
  readonly kind: 'url' | 'command' | 'json' | 'toml' | 'link' | 'nothing'
  readonly servers: readonly PastedServer[]
  readonly reason?: string | undefined // why there are none
}

export interface PastedServer {
  readonly name: string // not used by another server
  readonly entry: ConfigObject
  readonly notes: readonly string[] // what was lost or is worth a look
}

/** `POST /admin/config/try`: one connection to a server of a draft, as `dragoman check` makes it. */
export interface TriedServer {
  readonly state: 'ready' | 'degraded' | 'down' | 'untried' | 'disabled' | 'unavailable' | 'connecting'
  readonly transport: string
  readonly revision?: string | undefined
  readonly tools?: number | undefined
  readonly prompts?: number | undefined
  readonly resources?: number | undefined // templates included
  readonly ms?: number | undefined
  readonly reason?: string | undefined
  readonly flaws?: readonly string[] | undefined
  readonly stderr?: readonly string[] | undefined // the last lines that it printed
}
