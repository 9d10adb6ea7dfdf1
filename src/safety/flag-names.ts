import type { FlaggedTool, ToolFlag } from '../protocol/pins.ts'
import type { Json } from '../wire/json/json.ts'
import { oneLine, toolTextsOf } from './flag-tool.ts'
import { findHidden } from './hidden-text.ts'

/** The tools of one server. */
export interface ListedServer {
  readonly server: string
  readonly tools: readonly Json[]
}

const SEPARATORS = ['__', '/', '.', ':'] // that gateways and clients put between the name of a server and of a tool
const LEAST_LENGTH = 8 // of a name that is no ordinary word
const CONTEXT = 60

const namesOf = ({ tools }: ListedServer): string[] => tools.flatMap(tool => tool.get('name')?.asString() ?? [])

/** Letters of other scripts that look like Latin ones. */
const LOOKALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  [...'аaеeоoрpсcуyхxіiѕsјjԁdһhӏlьbгrνvοoαaιiκkτtρpԛqԝw'].flatMap((letter, at, all) =>
    at % 2 === 0 ? [[letter, all[at + 1] ?? letter]] : [],
  ),
)

/** Equal for names that people cannot tell apart. */
export const skeletonOf = (name: string): string => {
  const hidden = new Set(findHidden(name).map(({ at }) => at))
  const seen = [...name].filter((_, at) => !hidden.has(at)).join('')
  return [...seen.normalize('NFKC').toLowerCase()]
    .map(letter => LOOKALIKES[letter] ?? letter)
    .join('')
    .replace(/[-_.\s]+/g, '_')
}

/**
 * What the rules about several servers find in a workspace. `isPlain`: tools are shown under their own names, so that
 * equal ones compete.
 */
export const flagNames = (servers: readonly ListedServer[], isPlain: boolean): readonly FlaggedTool[] => {
  const owners = new Map<string, { readonly server: string; readonly name: string }[]>()
  for (const listed of servers)
    for (const name of namesOf(listed)) {
      const skeleton = skeletonOf(name)
      owners.set(skeleton, [...(owners.get(skeleton) ?? []), { server: listed.server, name }])
    }
  return servers.flatMap(listed => {
    const others = servers.filter(other => other !== listed)
    const own = new Set(namesOf(listed).map(skeletonOf))
    const foreign = distinctNames(others, own)
    return listed.tools.flatMap(tool => {
      const name = tool.get('name')?.asString()
      if (name === undefined) return []
      const flags = [...shadowFlags(name, listed.server, others, owners, isPlain), ...mentionFlags(tool, foreign)]
      return flags.map(flag => ({ server: listed.server, tool: name, flag }))
    })
  })
}

const shadowFlags = (
  name: string,
  server: string,
  others: readonly ListedServer[],
  owners: ReadonlyMap<string, readonly { readonly server: string; readonly name: string }[]>,
  isPlain: boolean,
): ToolFlag[] => {
  const prefix = others.find(other => SEPARATORS.some(separator => name.startsWith(`${other.server}${separator}`)))
  if (prefix) return [{ rule: 'shadowing', at: 'name', detail: `begins like the tools of server "${prefix.server}"` }]
  const rivals = (owners.get(skeletonOf(name)) ?? []).filter(rival => rival.server !== server)
  const rival = rivals.find(each => isPlain || (each.name !== name && isDisguised(each.name, name)))
  if (!rival) return []
  const how = rival.name === name ? 'is also' : `can be taken for "${rival.name}",`
  return [{ rule: 'shadowing', at: 'name', detail: `${how} a tool of server "${rival.server}"` }]
}

/** Whether names differ in more than case and separators, which differ between honest servers. */
const isDisguised = (a: string, b: string): boolean => {
  const plain = (name: string): string => name.toLowerCase().replace(/[-_.\s]+/g, '_')
  return plain(a) !== plain(b)
}

/** Names of other servers' tools that no ordinary text contains. */
const distinctNames = (others: readonly ListedServer[], own: ReadonlySet<string>): ReadonlyMap<string, string> =>
  new Map(
    others.flatMap(listed =>
      namesOf(listed)
        .filter(name => name.length >= LEAST_LENGTH && /[_A-Z-]/.test(name.slice(1)) && !own.has(skeletonOf(name)))
        .map(name => [name, listed.server] as const),
    ),
  )

const mentionFlags = (tool: Json, foreign: ReadonlyMap<string, string>): ToolFlag[] => {
  for (const { at, text } of toolTextsOf(tool))
    for (const found of text.matchAll(/[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+/g)) {
      const server = foreign.get(found[0])
      if (server === undefined || at === 'name') continue
      const around = text.slice(Math.max(0, found.index - CONTEXT), found.index + found[0].length + CONTEXT)
      return [{ rule: 'other-tools', at, detail: `names "${found[0]}" of server "${server}": ${oneLine(around)}` }]
    }
  return []
}
