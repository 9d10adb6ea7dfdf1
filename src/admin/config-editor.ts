import { createHmac } from 'node:crypto'
import { constants } from 'node:fs'
import { access, realpath } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { type ConfigDifference, compareConfigs, hasNoChanges } from '../config/difference.ts'
import { applyEdits, type ConflictingEdit, conflictsIn, type StructuralEdit } from '../config/edit/config-edits.ts'
import { type HiddenText, hideValues, restoreText, restoreValue } from '../config/edit/hidden-values.ts'
import { fileToEdit, writeOutServers } from '../config/edit/own-file.ts'
import { publicValue } from '../config/edit/public-values.ts'
import { readForEdit, writeEdited } from '../config/edit/safe-write.ts'
import { parseJsonText } from '../config/json-text.ts'
import { ConfigError, type PlacedProblem } from '../config/problems.ts'
import { BUILT_IN } from '../config/schema.ts'
import { isRawObject, type RawObject } from '../config/server-entries.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { ServerReport } from '../protocol/status.ts'
import type { AffectedWorkspace, ConfigCheck, ConfigDocument, ConfigSaved } from './api/config.ts'
import { AdminError } from './endpoints.ts'
import type { GatewayControl } from './gateway-endpoints.ts'

export interface ConfigEditorOptions {
  readonly current: () => Snapshot
  /** Reads a configuration file, or the text that it would have. */
  readonly load: (file: string | undefined, text?: string) => Promise<Snapshot>
  readonly control: GatewayControl | undefined // undefined: another program embeds the gateway
  readonly rejected: () => ConfigDocument['rejected']
  readonly sessionsIn: (workspace: string) => number
  /** Connects to one server of a configuration, as `dragoman check` does. */
  readonly tryServer: (snapshot: Snapshot, name: string, signal: AbortSignal) => Promise<ServerReport>
  readonly key: Uint8Array // the tags and ids of secrets must not help to guess them
}

/** A draft as it arrives: its texts may hold hidden values. */
export interface EditorDraft {
  readonly text?: string | undefined
  readonly edits: readonly StructuralEdit[]
}

/** The file as it is now. */
interface FileState {
  readonly file: string
  readonly isUsed: boolean // by the gateway
  readonly text: string | undefined // undefined: there is none
  readonly etag: string
  readonly hidden: HiddenText
}

/** The text that a draft makes. */
interface Drafted {
  readonly text: string
  readonly problems: readonly PlacedProblem[]
}

const EMBEDDED = 'The program that embeds this gateway controls its configuration.'
const WITHOUT_FILE =
  'The gateway was started for one server, for the demo, or with --no-config. To use a file, start it with "dragoman serve --config FILE".'
const MAX_TRIES = 2 // each may start a program

/** Reads, checks and writes the configuration file for its owner. Secrets stay in this process. */
export const createConfigEditor = (options: ConfigEditorOptions) => {
  const { current, load, control, rejected, sessionsIn, tryServer, key } = options
  let tries = 0
  let saving: Promise<unknown> = Promise.resolve()

  const etagOf = (text: string | undefined): string =>
    text === undefined ? 'none' : createHmac('sha256', key).update(`etag ${text}`).digest('hex').slice(0, 32)

  const readFile = async (): Promise<FileState> => {
    const { file: used } = current()
    const file = used ?? (await fileToEdit(undefined, { env: process.env }))
    const text = await readForEdit(file)
    return { file, isUsed: used !== undefined, text, etag: etagOf(text), hidden: hideValues(text ?? '', key) }
  }

  /** Why the file cannot be changed here; undefined if it can. */
  const whyFixed = async (): Promise<string | undefined> => {
    if (!control) return EMBEDDED
    const { file } = current()
    if (file === undefined) return control.useFile ? undefined : WITHOUT_FILE
    const target = await realpath(file).catch(() => file)
    if (!(await isWritable(target))) return `${file} is read-only for the user who runs the gateway.`
    return (await isWritable(dirname(target)))
      ? undefined
      : `The folder of ${file} is read-only, so it cannot be replaced safely.`
  }

  /** What is wrong with a text, or the configuration that it makes. */
  const examine = async (file: string, text: string): Promise<Snapshot | readonly PlacedProblem[]> => {
    try {
      return await load(file, text)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return error.problems.length > 0 ? error.problems : [{ path: [], message: error.message }]
    }
  }

  const draftText = ({ file, text, hidden }: FileState, draft: EditorDraft): Drafted => {
    const start = draft.text === undefined ? { value: text, problems: [] } : restoreText(draft.text, hidden)
    const problems = [...start.problems]
    const edits = draft.edits.map(edit => {
      if (edit.kind !== 'set') return edit
      const restored = restoreValue(edit.value, hidden, edit.path)
      problems.push(...restored.problems)
      return { ...edit, value: restored.value }
    })
    try {
      return { text: applyEdits(file, start.value, edits), problems }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const found = error.problems.length > 0 ? error.problems : [{ path: [], message: error.message }]
      return { text: start.value ?? '', problems: [...problems, ...found] }
    }
  }

  const affectedBy = (plan: ConfigDifference): readonly AffectedWorkspace[] => {
    const isTouched = new Set(plan.servers.filter(({ kind }) => kind !== 'added').map(({ name }) => name))
    const changed = new Map(plan.workspaces.map(({ name, kind }) => [name, kind]))
    return [...current().workspaces.values()].flatMap(({ name, servers }): AffectedWorkspace[] => {
      const isAffected = changed.has(name) || servers.some(server => isTouched.has(server))
      if (!isAffected) return []
      return [{ name, effect: changed.get(name) === 'removed' ? 'ends' : 'lists_change', sessions: sessionsIn(name) }]
    })
  }

  const readDocument = async (isOwner: boolean): Promise<ConfigDocument> => {
    const { listen, file: used } = current()
    const running = { host: listen.host, port: listen.port }
    const reason = await whyFixed()
    const edit = { isAllowed: reason === undefined, reason }
    const base = { running, rejected: rejected(), isBuiltIn: false, value: {}, warnings: [] }
    const state = await readFile().catch((error: unknown) => {
      if (error instanceof ConfigError) return error
      throw error
    })
    if (state instanceof ConfigError) {
      const issues = [{ path: [], message: state.message }]
      return { ...base, file: used, etag: 'unreadable', issues, edit: { isAllowed: false, reason: state.message } }
    }
    const { file, isUsed, text, etag, hidden } = state
    const place = isUsed ? { file, note: noteOn(file) } : { suggestedFile: file }
    const missing = {
      path: [],
      message: `${file} does not exist any more. The configuration that was read last stays in use.`,
    }
    if (text === undefined) return { ...base, ...place, etag, text: '', issues: isUsed ? [missing] : [], edit }
    const examined = await examine(file, text)
    const isValid = !isProblems(examined)
    const pending = isValid && isUsed ? compareConfigs(current(), examined) : undefined
    const shown = shownValue(file, hidden.text)
    return {
      ...base,
      ...place,
      ...shown,
      value: isOwner ? shown.value : publicValue(shown.value),
      etag,
      ...(isOwner && { text: hidden.text }),
      issues: isProblems(examined) ? examined : [],
      warnings: isValid ? warningsOf(examined) : [],
      edit,
      ...(pending && !hasNoChanges(pending) && { pending }),
    }
  }

  const check = async (draft: EditorDraft): Promise<ConfigCheck> => {
    const state = await readFile()
    const { text, problems } = draftText(state, draft)
    const { text: shown } = hideValues(text, key, state.hidden.secrets)
    const examined = problems.length > 0 ? problems : await examine(state.file, text)
    const value = isJson(text) ? shownValue(state.file, shown).value : undefined
    const base = { etag: state.etag, text: shown, value }
    if (isProblems(examined)) return { ...base, issues: examined, warnings: [], affected: [] }
    const plan = compareConfigs(current(), examined)
    return { ...base, issues: [], warnings: warningsOf(examined), plan, affected: affectedBy(plan) }
  }

  const saveNow = async (draft: EditorDraft, etag: string): Promise<ConfigSaved> => {
    const reason = await whyFixed()
    if (reason !== undefined || !control) throw new AdminError(409, reason ?? EMBEDDED)
    const state = await readFile()
    if (state.etag !== etag) throw changedMeanwhile(state, draft)
    const { text, problems } = draftText(state, draft)
    const examined = problems.length > 0 ? problems : await examine(state.file, text)
    if (isProblems(examined))
      throw new AdminError(422, 'The configuration has problems and was not saved.', { issues: examined as never })
    const backup = text === state.text ? undefined : await write(state, text, draft)
    const saved = { file: state.file, etag: etagOf(text), backup }
    try {
      const plan = await (state.isUsed ? control.reload() : control.useFile?.(state.file))
      return { ...saved, outcome: plan ? 'applied' : 'written', plan }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      return { ...saved, outcome: 'rejected', reason: error.message }
    }
  }

  const write = async (state: FileState, text: string, draft: EditorDraft): Promise<string | undefined> => {
    try {
      return await writeEdited(state.file, state.text, text, 'last')
    } catch (error) {
      const now = await readFile().catch(() => undefined)
      if (now && now.etag !== state.etag) throw changedMeanwhile(now, draft)
      const why = error instanceof Error ? error.message : String(error)
      throw new AdminError(409, `${state.file} was not written: ${why}`)
    }
  }

  /** One after the other, so that the second of two saves sees the text of the first. */
  const save = (draft: EditorDraft, etag: string): Promise<ConfigSaved> => {
    const saved = saving.then(() => saveNow(draft, etag))
    saving = saved.catch(() => {})
    return saved
  }

  const tryOnce = async (draft: EditorDraft, name: string, signal: AbortSignal): Promise<ServerReport> => {
    const state = await readFile()
    const { text, problems } = draftText(state, draft)
    const examined = problems.length > 0 ? problems : await examine(state.file, text)
    // Mistakes elsewhere in the file do not matter for one server.
    const alone = isProblems(examined) ? await examine(state.file, onlyServer(text, name)) : examined
    if (isProblems(alone))
      throw new AdminError(422, alone.map(({ message }) => message).join('\n'), { issues: alone as never })
    const server = alone.servers.get(name)
    if (!server) throw new AdminError(404, `The configuration has no server ${JSON.stringify(name)}.`)
    if (tries >= MAX_TRIES)
      throw new AdminError(429, 'Two servers are being tried already. Wait until one has answered.')
    tries++
    try {
      const servers = new Map([[name, { ...server, disabled: false }]])
      return await tryServer({ ...alone, servers, workspaces: new Map() }, name, signal)
    } finally {
      tries--
    }
  }

  return {
    readDocument,
    check,
    save,
    tryOnce,
    /** The names that servers have, and the port, for pasted entries. */
    pasteContext: () => ({ taken: (name: string) => current().servers.has(name), port: current().listen.port }),
  }
}

const changedMeanwhile = ({ etag, text, hidden, file }: FileState, draft: EditorDraft): AdminError => {
  const conflicts: readonly ConflictingEdit[] =
    draft.text === undefined && isJson(text ?? '') ? conflictsIn(shownValue(file, hidden.text).value, draft.edits) : []
  return new AdminError(
    412,
    `${file} has changed since you read it, so nothing was saved. Look at what has changed, and apply your edits to the new text.`,
    { etag, conflicts: conflicts as never },
  )
}

const isProblems = (examined: Snapshot | readonly PlacedProblem[]): examined is readonly PlacedProblem[] =>
  Array.isArray(examined)

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT', // it is created
  )

const isJson = (text: string): boolean => {
  try {
    return isRawObject(parseJsonText(text).value)
  } catch {
    return false
  }
}

/** The value of a text; the built-in servers that one word asks for are written out, as every edit of them does. */
const shownValue = (file: string, text: string): { readonly value: RawObject; readonly isBuiltIn: boolean } => {
  if (!isJson(text)) return { value: {}, isBuiltIn: false }
  const value = parseJsonText(text).value as RawObject
  if (value.mcpServers !== BUILT_IN) return { value, isBuiltIn: false }
  return { value: parseJsonText(writeOutServers(file, text)).value as RawObject, isBuiltIn: true }
}

/** The same file with one server. */
const onlyServer = (text: string, name: string): string => {
  if (!isJson(text)) return text
  const { passEnv, mcpServers, servers } = parseJsonText(text).value as RawObject
  const entry = [mcpServers, servers]
    .map(group => (isRawObject(group) ? group[name] : undefined))
    .find(it => it !== undefined)
  return JSON.stringify({ passEnv, mcpServers: { ...(entry !== undefined && { [name]: entry }) } })
}

const warningsOf = ({ warnings, servers }: Snapshot): readonly string[] => [
  ...warnings,
  ...[...servers.values()].flatMap(server =>
    server.kind === 'unavailable' && !server.disabled ? `${server.name} cannot be served: ${server.reason}` : [],
  ),
]

/** Files of other programs that the gateway reads, too. */
const noteOn = (file: string): string | undefined => {
  const [name, folder] = [basename(file), basename(dirname(file))]
  if (name === '.mcp.json') return 'Claude Code reads this file, too: a change here changes its servers.'
  if (name === 'mcp.json' && folder === '.vscode')
    return 'VS Code reads this file, too: a change here changes its servers.'
  return undefined
}
