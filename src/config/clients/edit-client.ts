import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { editJson, parseEdited } from '../edit/json-edit.ts'
import { readForEdit, writeEdited } from '../edit/safe-write.ts'
import { editToml, parseToml } from '../edit/toml-edit.ts'
import { ConfigError } from '../problems.ts'
import { isRawObject, type RawObject } from '../server-entries.ts'
import type { McpClient, UserPlace } from './client-files.ts'

/** The file of a client that is written: of the user, or of the current project. */
export const clientFile = async (client: McpClient, place: UserPlace, isProject: boolean): Promise<string> => {
  if (isProject) {
    if (client.projectFile !== undefined) return join(place.folder, client.projectFile)
    throw new ConfigError(`${client.title} has no file for a project; leave out --project`)
  }
  const files = client.userFiles(place)
  for (const file of files) if (await stat(file).catch(() => undefined)) return file
  return files[0] ?? ''
}

/** The entries of a client's file, and the text after one of them was changed. */
export interface EditableClient {
  readonly text: string | undefined // of the file; undefined: there is none
  readonly entries: RawObject
  /** The text with the entry set, or removed if undefined. */
  change(name: string, entry: object | undefined): string
  /** Writes the text; returns the path of the backup. */
  save(text: string): Promise<string | undefined>
}

/** Opens the file of a client; a ConfigError says why it cannot be edited. */
export const openClient = async ({ key, format }: McpClient, file: string): Promise<EditableClient> => {
  const text = await readForEdit(file)
  const root =
    format === 'toml' ? parseToml(file, text ?? '') : text?.trim() ? (parseEdited(file, text) as RawObject) : {}
  const entries = root[key]
  if (entries !== undefined && !isRawObject(entries))
    throw new ConfigError(`${file}: "${key}" is not an object; it was not changed`)
  return {
    text,
    entries: entries ?? {},
    change: (name, entry) => {
      if (format === 'toml') return editToml(file, text, [key, name], entry as RawObject | undefined)
      return editJson(file, text, [{ path: [key, name], value: entry }])
    },
    save: edited => writeEdited(file, text, edited, 'each'),
  }
}

/** Whether an entry is the same as the one that would be written; objects of a TOML file have no prototype. */
export const isSameEntry = (found: unknown, entry: object): boolean =>
  isDeepStrictEqual(JSON.parse(JSON.stringify(found ?? null)), JSON.parse(JSON.stringify(entry)))

/** An entry as it stands in the file of a client that has no other one. */
export const entryText = ({ key, format }: McpClient, name: string, entry: object): string =>
  format === 'toml'
    ? editToml('the entry', undefined, [key, name], entry as RawObject)
    : `${JSON.stringify({ [key]: { [name]: entry } }, undefined, 2)}\n`
