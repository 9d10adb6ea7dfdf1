import type { StructuralEdit } from '../config/edit/config-edits.ts'
import { readPaste } from '../config/paste/paste.ts'
import { jsonSchema } from '../config/schema.ts'
import type { ConfigCheck, ConfigDocument, ConfigSaved, PastedServers, TriedServer } from './api/config.ts'
import { type ConfigEditorOptions, createConfigEditor, type EditorDraft } from './config-editor.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

const MAX_TEXT_BYTES = 1024 * 1024 // a hundred times the largest configuration that was seen
const MAX_PASTE_BYTES = 64 * 1024

const TEXT = { type: 'string' }
const EDIT = {
  type: 'object',
  properties: {
    kind: { type: 'string', enum: ['set', 'remove', 'rename'] },
    path: { type: 'array', items: TEXT, description: 'keys from the root of the file' },
    value: { description: 'of "set"; ${hidden:<id>} in it stands for a secret of the file' },
    before: { description: 'of "set" and "remove": the value that the author saw, to find conflicts' },
    to: { type: 'string', description: 'of "rename": the new name' },
  },
  required: ['kind', 'path'],
  additionalProperties: false,
}
const DRAFT = {
  text: { type: 'string', description: 'the whole text; absent: that of the file' },
  edits: { type: 'array', items: EDIT, description: 'applied to the text, one after the other' },
}

/** The endpoints for the configuration file. */
export const createConfigEndpoints = (options: ConfigEditorOptions): readonly AdminEndpoint[] => {
  const editor = createConfigEditor(options)
  let schema: object | undefined

  const read = async ({ role, response }: AdminCall): Promise<ConfigDocument> => {
    const document = await editor.readDocument(role === 'owner')
    response.setHeader('etag', `"${document.etag}"`)
    return document
  }
  const check = async (call: AdminCall): Promise<ConfigCheck> => editor.check(await draftIn(call))
  const save = async (call: AdminCall): Promise<ConfigSaved> => {
    const tag = call.request.headers['if-match']
    if (tag === undefined)
      throw new AdminError(
        428,
        'Send the header If-Match with the ETag of GET /admin/config, so that no other change is lost.',
      )
    return editor.save(await draftIn(call), tag.replace(/^"|"$/g, ''))
  }
  const paste = async (call: AdminCall): Promise<PastedServers> => {
    const body = await call.json()
    return readPaste(body.get('text')?.asString() ?? '', editor.pasteContext())
  }
  const tryServer = async (call: AdminCall): Promise<TriedServer> => {
    const body = await call.json()
    const { name: _, ...tried } = await editor.tryOnce(
      await draftIn(call, body.toValue()),
      body.get('name')?.asString() ?? '',
      call.signal,
    )
    return tried
  }

  return [
    {
      method: 'GET',
      path: '/admin/config',
      access: 'viewer',
      summary: 'The configuration file; secrets in it are hidden',
      run: read,
    },
    {
      method: 'PUT',
      path: '/admin/config',
      access: 'owner',
      summary: 'Changes the configuration file and applies it',
      headers: {
        'If-Match': { type: 'string', description: 'the ETag of GET /admin/config, so that no other change is lost' },
      },
      body: { type: 'object', properties: DRAFT, additionalProperties: false },
      maxBodyBytes: MAX_TEXT_BYTES,
      run: save,
    },
    {
      method: 'GET',
      path: '/admin/config/schema',
      access: 'viewer',
      summary: 'The JSON Schema of the configuration file',
      run: () => {
        schema ??= jsonSchema()
        return schema
      },
    },
    {
      method: 'POST',
      path: '/admin/config/check',
      access: 'owner',
      summary: 'What is wrong with a draft of the configuration, and what it would change',
      body: { type: 'object', properties: DRAFT, additionalProperties: false },
      maxBodyBytes: MAX_TEXT_BYTES,
      isAudited: false, // it changes nothing, and follows each key
      run: check,
    },
    {
      method: 'POST',
      path: '/admin/config/paste',
      access: 'owner',
      summary: 'The servers that a URL, a command line or a part of the configuration of a client describes',
      body: { type: 'object', properties: { text: TEXT }, required: ['text'] },
      maxBodyBytes: MAX_PASTE_BYTES,
      isAudited: false,
      run: paste,
    },
    {
      method: 'POST',
      path: '/admin/config/try',
      access: 'owner',
      summary: 'Connects once to a server of a draft of the configuration',
      body: { type: 'object', properties: { ...DRAFT, name: TEXT }, required: ['name'], additionalProperties: false },
      maxBodyBytes: MAX_TEXT_BYTES,
      run: tryServer,
    },
  ]
}

const draftIn = async (call: AdminCall, body?: unknown): Promise<EditorDraft> => {
  const { text, edits = [] } = (body ?? (await call.json()).toValue()) as {
    text?: string
    edits?: readonly Partial<StructuralEdit>[]
  }
  return { text, edits: edits.map(checkedEdit) }
}

const checkedEdit = (edit: Partial<StructuralEdit>): StructuralEdit => {
  if (edit.kind === 'rename' && (typeof edit.to !== 'string' || edit.to === ''))
    throw new AdminError(400, 'The body is not valid: an edit of kind "rename" needs "to", a name that is not empty')
  if (edit.kind === 'set' && edit.value === undefined)
    throw new AdminError(400, 'The body is not valid: an edit of kind "set" needs "value"; "remove" removes one')
  return edit as StructuralEdit
}
