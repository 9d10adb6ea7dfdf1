import type { ServerState } from './status.ts'

/** What was found when every server of a configuration was met once. */
export interface CheckReport {
  readonly servers: readonly ServerReport[]
  readonly workspaces: readonly WorkspaceReport[]
}

/** One server as it was found. */
export interface ServerReport {
  readonly name: string
  readonly state: ServerState
  readonly transport: string // http, sse, stdio, built-in
  readonly revision?: string | undefined
  readonly tools?: number | undefined
  readonly prompts?: number | undefined
  readonly resources?: number | undefined // templates included
  readonly ms?: number | undefined // until it had answered everything
  readonly reason?: string | undefined
  readonly flaws?: readonly string[] | undefined // what it lists wrongly
}

/** What a workspace shows of the servers that answered. */
export interface WorkspaceReport {
  readonly name: string
  readonly servers: readonly string[]
  readonly names: string // the style
  readonly tools: readonly string[] // as they are shown
  readonly prompts: readonly string[]
  readonly resources: number
  readonly hidden: { readonly policy: number; readonly overlays: number }
  readonly collisions: readonly NameCollision[]
  readonly unknown: readonly string[] // tools in the configuration that their servers do not have
  readonly shadowed: readonly ShadowedTool[]
}

/** A tool nobody can call, because another one of its server is shown under the name it was given. */
export interface ShadowedTool {
  readonly tool: string // as `<server>/<tool>`, and so is the other one
  readonly by: string
  readonly as: string
}

/** One name or URI that several servers have, and what each of them is shown as. */
export interface NameCollision {
  readonly name: string
  readonly shown: readonly { readonly server: string; readonly as: string }[]
}
