import { META } from '../../protocol/meta.ts'
import { Json } from '../../wire/json/json.ts'
import type { Client } from './client-command.ts'
import type { ClientError } from './exit-codes.ts'
import { findItems, type Item, LISTS, type ListName, labelOf } from './items.ts'
import { unknownServer } from './sources.ts'
import { fitLine, safeLine, styleOf } from './terminal.ts'

/** Prints lists of every connection. Servers that fail are named on stderr, and decide the exit code. */
export const listCommand = async (client: Client, lists: readonly ListName[]): Promise<number> => {
  const { sources } = client
  if (sources.item !== undefined && sources.server === undefined) throw unknownServer(sources.item, sources.all)
  const isWhole = client.flags.all === true || sources.server !== undefined
  const { items, errors, missing, leftOut } = await findItems(client, lists, undefined, isWhole)
  if (client.isJson) client.write(`${listJson(items, lists)}\n`)
  else if (items.length > 0 || errors.length === 0) printItems(client, items, lists)
  noteMissing(client, missing)
  if (leftOut > 0)
    client.note(
      `this is what clients see: the budget leaves out ${leftOut} tools, which they find with search_tools; --all lists them`,
    )
  return reportErrors(client, errors)
}

/** Names the servers that are still starting, or down, and whose items the daemon does not know. */
export const noteMissing = (client: Client, missing: readonly string[]): void => {
  if (missing.length > 0)
    client.note(`without ${missing.join(', ')}, which the daemon cannot list yet; see "dragoman status"`)
}

/** Names the servers that failed; returns the exit code. */
export const reportErrors = (client: Client, errors: readonly ClientError[]): number => {
  const { error, env } = client.terminal
  for (const { message } of errors) client.note(`${styleOf(error, env).red('dragoman:')} ${message}`)
  return errors[0]?.code ?? 0
}

/** The lists as they were received; items of several servers say where they come from. */
export const listJson = (items: readonly Item[], lists: readonly ListName[]): Json =>
  Json.of(
    Object.fromEntries(
      lists.map(list => {
        const { member, key } = LISTS[list]
        const own = items.filter(({ definition }) => definition.has(key))
        return [member, own.map(withOrigin)]
      }),
    ),
  )

const withOrigin = ({ server, name, definition }: Item): Json => {
  const meta = definition.get('_meta')
  if (server === undefined || meta?.has(META.origin)) return definition
  return definition.with('_meta', (meta?.isObject ? meta : Json.empty).with(META.origin, Json.of({ server, name })))
}

/** One line each: aligned and cut to the width of a terminal, or separated by a tab for other programs. */
export const printItems = (client: Client, items: readonly Item[], lists: readonly ListName[]): void => {
  const { output, env } = client.terminal
  const { dim } = styleOf(output, env)
  const rows = items.map(item => ({ label: safeLine(shownLabel(item)), about: safeLine(aboutOf(item.definition)) }))
  if (rows.length === 0) return client.note(`no ${lists.map(list => LISTS[list].one).join(' and no ')} found`)
  if (output.isTTY !== true) return client.write(rows.map(({ label, about }) => `${label}\t${about}\n`).join(''))
  const widest = Math.min(WIDEST, Math.floor((output.columns ?? WIDEST * 2) / 2))
  const width = Math.min(widest, Math.max(...rows.map(({ label }) => label.length)))
  for (const { label, about } of rows) {
    const left = label.padEnd(width)
    const right = fitLine(`${left}  ${about}`, output).slice(left.length)
    client.write(`${left}${dim(right)}\n`.replace(/ +\n$/, '\n'))
  }
}

const WIDEST = 48 // characters of the first column

/** A prompt shows its arguments; a URI is never cut into server and name. */
const shownLabel = (item: Item): string => {
  const { definition, sentName } = item
  if (definition.has('uri') || definition.has('uriTemplate')) return sentName
  const args = definition.get('arguments')?.elements()
  if (!args) return labelOf(item)
  const names = args.map(each => `${each.get('name')?.asString() ?? ''}${each.get('required')?.asBoolean() ? '' : '?'}`)
  return `${labelOf(item)}(${names.join(', ')})`
}

const aboutOf = (definition: Json): string =>
  definition.get('description')?.asString() ??
  definition.get('title')?.asString() ??
  definition.get('name')?.asString() ??
  ''
