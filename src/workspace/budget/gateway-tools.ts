import { sizeOfTool } from '../../protocol/measure-tool.ts'
import { NEWEST_LEGACY, type Revision } from '../../protocol/revisions.ts'
import { sumOfSizes, type ToolSize } from '../../protocol/tool-size.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { createMemberList, type MemberItem } from '../catalog/member-list.ts'
import type { MergedList, ShownItem } from '../catalog/merged-list.ts'
import { exposedNames } from '../catalog/names.ts'

// The tools that the gateway lists for a workspace whose own tools exceed its budget.

export type GatewayTool = 'search_tools' | 'describe_tool' | 'call_tool'

const TOOL_NAME = 'The name of the tool, as search_tools gives it'
const NO_TASK = { taskSupport: 'forbidden' }
const READ_ONLY = { readOnlyHint: true, openWorldHint: false }

export const MOST_RESULTS = 50
export const DEFAULT_RESULTS = 5

const DEFINITIONS: Readonly<Record<GatewayTool, PlainObject>> = {
  search_tools: {
    title: 'Search tools',
    description:
      'Finds tools of this server. It has more tools than it lists: search before you say that something cannot be done. Returns the names, parameters and purposes of the tools that fit best. Without a query: which groups of tools there are.',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool should do, in a few words' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MOST_RESULTS,
          default: DEFAULT_RESULTS,
          description: 'How many tools to return',
        },
      },
    },
    annotations: { title: 'Search tools', ...READ_ONLY },
    execution: NO_TASK,
  },
  describe_tool: {
    title: 'Describe a tool',
    description:
      'Returns the complete definition of a tool, with its JSON schema. The result of search_tools is often enough.',
    inputSchema: {
      type: 'object',
      properties: { name: { type: 'string', description: TOOL_NAME } },
      required: ['name'],
    },
    annotations: { title: 'Describe a tool', ...READ_ONLY },
    execution: NO_TASK,
  },
  call_tool: {
    title: 'Call a tool',
    description: 'Calls a tool that is not listed. Find its name and parameters with search_tools first.',
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: TOOL_NAME },
        arguments: { type: 'object', description: 'The arguments of that tool', additionalProperties: true },
      },
      required: ['name'],
    },
    annotations: { title: 'Call a tool' },
    execution: { taskSupport: 'optional' },
  },
}

export const GATEWAY_TOOLS = Object.keys(DEFINITIONS) as readonly GatewayTool[]

const LIST = createMemberList('tools', NEWEST_LEGACY, {
  items: GATEWAY_TOOLS.map(name => {
    const definition = Json.of({ name, ...DEFINITIONS[name] })
    return { original: name, native: definition, shown: definition }
  }),
})

export const GATEWAY_TOOLS_SIZE: ToolSize = sumOfSizes(LIST.items.map(({ shown }) => sizeOfTool(shown)))

export const DESCRIBE_TOOL_SIZE: ToolSize = sizeOfTool((LIST.items[1] as MemberItem).shown)

const OWN_SERVER = 'dragoman'

/** The names of the gateway's tools by what they are. The tools of servers keep theirs: a duplicate gets a prefix here. */
export const gatewayToolNames = (list: Pick<MergedList, 'find'>): ReadonlyMap<string, GatewayTool> => {
  const isTaken = (name: string): boolean => {
    const found = list.find(name)
    return found !== undefined && !('candidates' in found) && found.exposed === name
  }
  const rivals = [...GATEWAY_TOOLS, ...GATEWAY_TOOLS.map(name => `${OWN_SERVER}__${name}`)].filter(isTaken)
  const offers = [
    { server: '', names: rivals },
    { server: OWN_SERVER, names: GATEWAY_TOOLS },
  ]
  const [, exposed = []] = exposedNames('plain', offers, [OWN_SERVER])
  return new Map(GATEWAY_TOOLS.map((tool, at) => [exposed[at] ?? tool, tool]))
}

/** The gateway's tools as a caller sees them. */
export const gatewayToolItems = (
  names: ReadonlyMap<string, GatewayTool>,
  revision: Revision,
  wanted: readonly GatewayTool[] = GATEWAY_TOOLS,
): readonly ShownItem[] =>
  [...names].flatMap(([exposed, tool], at) => {
    if (!wanted.includes(tool)) return []
    const definition = LIST.in(revision, at)
    return { exposed, definition: exposed === tool ? definition : definition.with('name', exposed) }
  })
