import { Json } from '../wire/json/json.ts'
import { META } from './meta.ts'

/** The tool that the gateway lists for a server while the login of the caller is missing. */
export const LOGIN_TOOL = 'login'

/** Whether the gateway itself has listed a tool, to start a login. Lists of servers never have its mark. */
export const isLoginTool = (tool: Json | undefined): boolean => tool?.at('_meta', META.login) !== undefined

/** The list of a server without that mark: a server must not pass for the gateway. */
export const withoutLoginMarks = (list: Json): Json => {
  const tools = list.get('tools')?.elements() ?? []
  if (!tools.some(isLoginTool)) return list
  const unmarked = (tool: Json): Json => tool.with('_meta', (tool.get('_meta') ?? Json.empty).without(META.login))
  return list.with('tools', Json.of(tools.map(tool => (isLoginTool(tool) ? unmarked(tool) : tool))))
}
