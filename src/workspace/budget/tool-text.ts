import { isLoginTool } from '../../protocol/login-tool.ts'
import { signatureOf } from '../../protocol/schema-text.ts'
import type { MissingScopes } from '../../protocol/scopes.ts'
import { sentencesOf } from '../../text/sentences.ts'
import { Json } from '../../wire/json/json.ts'
import type { ListItem, MergedList } from '../catalog/merged-list.ts'
import type { FoundTools, SearchedServer } from './search-tools.ts'

const LONGEST_SIGNATURE = 600 // characters
const LONGEST_PURPOSE = 240
const MOST_SERVERS = 100

type MissingScopesOf = (item: ListItem) => MissingScopes | undefined

/** What a search has found, for the model. */
export const writeFoundTools = (list: MergedList, found: FoundTools, missingScopes: MissingScopesOf): string => {
  if (found.kind === 'overview') return overviewText(list, found.servers, found.isForQuery)
  const { items, matching } = found
  const more = matching > items.length ? `The best ${items.length} of ${matching} tools that match` : 'Tools that match'
  const head = `${more}. Call one with call_tool, or by its name if it is listed.`
  return [head, ...items.map(item => toolText(item, missingScopes(item)))].join('\n\n')
}

const toolText = (item: ListItem, missing: MissingScopes | undefined): string => {
  const { definition, exposed } = item
  const signature = signatureOf(exposed, definition.get('inputSchema') ?? Json.empty)
  const needs = needsOf(item, missing)
  const purpose = purposeOf(definition.get('description')?.asString() ?? definition.get('title')?.asString() ?? '')
  return [cut(signature, LONGEST_SIGNATURE), purpose, needs.join('; ')].filter(line => line !== '').join('\n  ')
}

/** What a tool needs, or does, besides its parameters. */
const needsOf = ({ definition, member }: ListItem, missing: MissingScopes | undefined): string[] => {
  const hint = (name: string): boolean | undefined => definition.at('annotations', name)?.asBoolean()
  const effect = hint('readOnlyHint') === true ? 'read-only' : hint('destructiveHint') === true ? 'destructive' : ''
  const facts = [
    isLoginTool(definition) ? `starts a login; the other tools of ${member.server} are there after it` : '',
    effect,
    definition.at('execution', 'taskSupport')?.isString('required') ? 'runs as a task' : '',
    missing ? `needs a token with the scope ${missing.missing.join(' ')}` : '',
    member.isUp() ? '' : `${member.server} is unavailable at the moment`,
  ]
  return facts.filter(fact => fact !== '')
}

/** The first sentence. */
const purposeOf = (description: string): string =>
  cut(sentencesOf(description.slice(0, LONGEST_PURPOSE * 2))[0]?.text ?? '', LONGEST_PURPOSE)

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`)

const overviewText = ({ items }: MergedList, servers: readonly SearchedServer[], isForQuery: boolean): string => {
  const head = isForQuery
    ? `No tool matches; search for other words. There are ${items.length} tools:`
    : `Search for what a tool should do. There are ${items.length} tools:`
  const lines = servers.slice(0, MOST_SERVERS).map(({ member, tools, instructions }) => {
    const about = instructions === undefined ? '' : purposeOf(instructions)
    return `- ${member.server}: ${tools}${about === '' ? '' : `. ${about}`}`
  })
  const rest = servers.length > MOST_SERVERS ? [`and ${servers.length - MOST_SERVERS} more servers`] : []
  return [head, ...lines, ...rest].join('\n')
}
