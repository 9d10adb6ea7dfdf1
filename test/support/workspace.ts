import { defaultRules, type WorkspaceConfig } from '../../src/config/snapshot.ts'
import { Abort } from '../../src/protocol/cancellation.ts'
import type { Caller, Frame } from '../../src/protocol/exchange.ts'
import { MODERN } from '../../src/protocol/revisions.ts'
import type { ServerStatus } from '../../src/protocol/status.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { Json, type PlainObject } from '../../src/wire/json/json.ts'
import { createWorkspace, type WorkspaceDeps } from '../../src/workspace/workspace.ts'
import type { ScriptedMember } from './scripted-member.ts'

/** The keys of every workspace here, as replicas share them. */
export const CURSOR_KEYS: WorkspaceDeps['cursorKeys'] = [Buffer.alloc(32, 7)]

/** A modern caller called Ann, by default. */
export const callerOf = (over: Partial<Caller> = {}): Caller => ({
  workspace: 'w',
  principal: 'ann',
  revision: MODERN,
  capabilities: Json.empty,
  headers: new Map(),
  ...over,
})

/** A request, and all frames so far. */
export interface Asked {
  readonly frames: readonly Frame[]
  readonly notices: readonly string[] // their methods
  readonly abort: Abort
}

/** A workspace of scripted members. */
export const workspaceOf = (
  members: readonly ScriptedMember[],
  rules: Partial<WorkspaceConfig> = {},
  deps: Partial<WorkspaceDeps> = {},
) => {
  const servers = members.map(({ server }) => server)
  const config = { name: 'w', servers, ...defaultRules(servers.length), ...rules }
  const listeners: ((status: ServerStatus) => void)[] = []
  const workspace = createWorkspace(config, members, {
    log: SILENT,
    identity: Json.of({ name: 'dragoman', version: '0' }),
    cursorKeys: CURSOR_KEYS,
    onServerStatus: listener => {
      listeners.push(listener)
      return () => void listeners.splice(listeners.indexOf(listener), 1)
    },
    ...deps,
  })

  const begin = (method: string, params: PlainObject = {}, caller: Partial<Caller> = {}): Asked => {
    const frames: Frame[] = []
    const abort = new Abort()
    workspace.dispatch({
      kind: 'request',
      method,
      params: Json.of(params),
      caller: callerOf(caller),
      signal: abort,
      sink: frame => void frames.push(frame),
    })
    return {
      frames,
      abort,
      get notices() {
        return frames.flatMap(frame => (frame.kind === 'notice' ? frame.method : []))
      },
    }
  }

  /** The answer as plain data; an error where there is one. */
  const ask = (method: string, params?: PlainObject, caller?: Partial<Caller>): Promise<Record<string, unknown>> =>
    new Promise(resolve => {
      const abort = new Abort()
      workspace.dispatch({
        kind: 'request',
        method,
        params: Json.of(params ?? {}),
        caller: callerOf(caller),
        signal: abort,
        sink: frame => {
          if (frame.kind === 'result') resolve(frame.result.toValue() as Record<string, unknown>)
          if (frame.kind === 'failure') resolve({ ...frame.error, data: frame.error.data?.toValue() })
        },
      })
    })

  return {
    ...workspace,
    begin,
    ask,
    /** Reports a server status. */
    say: (name: string, state: ServerStatus['state']): void => {
      for (const listener of [...listeners]) listener({ name, state })
    },
    watchers: () => listeners.length,
  }
}

/** The names in a list of tools. */
export const toolsIn = (result: Record<string, unknown>): string[] =>
  ((result.tools ?? []) as { name: string }[]).map(({ name }) => name)
