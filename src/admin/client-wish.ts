import type { Json } from '../wire/json/json.ts'
import type { ClientChange } from './api/clients.ts'
import { AdminError } from './endpoints.ts'

/** A wished change with its defaults. */
export type ClientWish = ClientChange & { readonly workspace: string; readonly isForced: boolean }

const ENTRY_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
const SECRET = /^[\w.~+/=-]{1,4096}$/ // what may follow `Bearer` (RFC 6750)

/** Reads a change of a client's file. Its types were checked; the texts are limited to what files and headers take. */
export const readClientWish = (body: Json): ClientWish => {
  const text = (key: string): string | undefined => body.get(key)?.asString()
  const [name, token] = [text('name'), text('token')]
  if (name !== undefined && !ENTRY_NAME.test(name))
    throw new AdminError(422, 'The name of the entry: expected 1 to 64 letters, digits, "_", "." and "-"')
  if (token !== undefined && !SECRET.test(token))
    throw new AdminError(422, 'The token: expected letters, digits and "-._~+/=" only')
  return {
    action: text('action') === 'unlink' ? 'unlink' : 'link',
    workspace: text('workspace') ?? 'default',
    name,
    transport: text('transport') as ClientChange['transport'],
    token,
    isForced: body.get('isForced')?.toValue() === true,
  }
}
