// Clients and how they are connected: `/admin/clients`. Types only: the console imports this file.

export type ClientTransport = 'http' | 'stdio'

/** `GET /admin/clients?workspace=` */
export interface ClientList {
  readonly workspace: string
  readonly workspaces: readonly string[] // all of them
  readonly origin: string // at which the gateway listens
  readonly publicUrl?: string | undefined
  readonly needsToken: boolean // callers without one are refused
  readonly hasAuthServer: boolean // clients can log in with OAuth
  readonly placeholder: string // stands in the snippets for the token
  readonly stdio: readonly string[] // the command line of `dragoman stdio`
  readonly machine: string // the host name of the machine with the files
  readonly user: string // whose files they are
  readonly isHere: boolean // the caller is on that machine, too
  readonly clients: readonly ClientInfo[]
}

/** A client that the gateway knows. */
export interface ClientInfo {
  readonly id: string // as in `dragoman link ID`
  readonly title: string
  readonly format: 'json' | 'toml'
  readonly entry: string // the name of the entry for this workspace
  readonly transport: ClientTransport // that `dragoman link` would choose
  readonly snippets: Readonly<Partial<Record<ClientTransport, string>>> // what belongs into its file
  readonly state?: ClientFileState | undefined // for the owner only
}

/** What is in the file of a client. */
export interface ClientFileState {
  readonly file: string
  readonly exists: boolean
  readonly problem?: string | undefined // why it cannot be read or changed
  readonly links: readonly ClientLink[] // entries that lead to this gateway
  readonly others: readonly string[] // names of other entries
}

export interface ClientLink {
  readonly name: string
  readonly transport: ClientTransport
  readonly workspace: string
  readonly hasToken: boolean
}

/** The body of `POST /admin/clients/{client}/preview`. */
export interface ClientChange {
  readonly action: 'link' | 'unlink'
  readonly workspace?: string | undefined // default: default
  readonly name?: string | undefined // of the entry; default: that of the workspace
  readonly transport?: ClientTransport | undefined
  readonly token?: string | undefined // with http
  readonly isForced?: boolean | undefined // also if the entry is another server
}

/** The body of `POST /admin/clients/{client}/apply`. */
export interface ClientApply extends ClientChange {
  readonly stamp: string // of the preview: the file must not have changed since
  readonly machine?: string | undefined // its name, from callers on another one: they know whose file they change
}

/** What a change would do. */
export interface ClientPreview {
  readonly file: string
  readonly name: string // of the entry
  readonly kind: 'new' | 'replaces' | 'same' | 'other' | 'missing'
  readonly exists: boolean
  readonly stamp: string
  readonly lines: readonly ClientFileLine[] // texts of other entries are hidden
}

export type ClientFileLine =
  | { readonly kind: 'same' | 'added' | 'removed'; readonly text: string }
  | { readonly kind: 'gap'; readonly lines: number }

/** What was done. */
export interface ClientApplied {
  readonly file: string
  readonly name: string
  readonly backup?: string | undefined // the file before; undefined: there was none
}
