// What programs import from the package: the gateway to embed, and what is needed to define a server for it.
export {
  type EmbeddedGateway as Gateway,
  embedGateway as startGateway,
  type GatewayConfig,
  type GatewayOptions,
} from './app/embed.ts'
export { ConfigError } from './config/problems.ts'
export type { ServerState, ServerStatus, WorkspaceStatus } from './protocol/status.ts'
export type { Call } from './servers/define/call.ts'
export { oneOf } from './servers/define/completion.ts'
export { audio, type Block, embedded, image, link, text } from './servers/define/content.ts'
export { type DefinedServer, defineServer, type ServerDefinition } from './servers/define/define.ts'
export { failure } from './servers/define/failures.ts'
export { assistant, type Prompt, prompt, user } from './servers/define/prompts.ts'
export {
  type Ask,
  AskFailure,
  type ClientCapability,
  elicit,
  elicitUrl,
  listRoots,
  sample,
} from './servers/define/questions.ts'
export { type Resource, resource, type Template, template } from './servers/define/resources.ts'
export { type Tool, type ToolOutput, tool } from './servers/define/tools.ts'
export type { Log } from './telemetry/log.ts'
export { Json } from './wire/json/json.ts'
