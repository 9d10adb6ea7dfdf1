import type { CompiledApi, CompiledTool, CompileSettings } from '../plan.ts'
import { type ApiDocument, BrokenReference, type ReadPart, readApiDocument } from './api-document.ts'
import { type ApiOperation, eachOperation } from './operations.ts'
import { readParameters, type ToolArgument } from './parameters.ts'
import { readRequestBody } from './request-body.ts'
import { readSuccesses } from './responses.ts'
import { SchemaTooLarge, SchemaWriter } from './schema-writer.ts'
import { readSecurity, readServerList, readServers } from './security.ts'
import { isApiObject, memberOf, textMember } from './shape.ts'
import { ArgumentNames, nameTools } from './tool-names.ts'

const MOST_TOOLS = 10_000
const MOST_PARTS = 10_000 // of the schemas of one tool
const MOST_SCHEMA_BYTES = 512 * 1024
const MOST_DESCRIPTION = 4000
const MOST_SKIPPED = 100 // that are reported

/** Makes tools of an OpenAPI document. Throws DocumentProblem. */
export const compileApi = async (
  text: string,
  url: string,
  settings: CompileSettings,
  readPart: ReadPart,
): Promise<CompiledApi> => {
  const document = await readApiDocument(text, url, readPart)
  const info = memberOf(document.root, 'info')
  const skipped: string[] = []
  const skip = (place: string, reason: string): void => {
    if (skipped.length < MOST_SKIPPED) skipped.push(`${place.slice(0, 200)}: ${reason}`)
  }
  const operations: ApiOperation[] = []
  eachOperation(document, settings, each => operations.push(each), skip)
  const names = nameTools(
    operations.map(({ method, path, members }) => ({ method, path, id: textMember(members, 'operationId') })),
  )
  const tools = operations.flatMap((operation, at): CompiledTool[] => {
    if (at >= MOST_TOOLS) return []
    try {
      return [compileTool(document, operation, names[at] ?? '', settings)]
    } catch (error) {
      if (!(error instanceof BrokenReference) && !(error instanceof SchemaTooLarge)) throw error
      const reason = error instanceof SchemaTooLarge ? 'its schemas are too large' : error.message
      skip(`${operation.method} ${operation.path}`, reason)
      return []
    }
  })
  if (operations.length > MOST_TOOLS) skip('document', `only the first ${MOST_TOOLS} operations are tools`)
  return {
    title: textMember(info, 'title') ?? 'API',
    version: String(memberOf(info, 'version') ?? '0'),
    description: textMember(info, 'description')?.slice(0, MOST_DESCRIPTION),
    tools,
    servers: readServers(document),
    security: readSecurity(document),
    skipped,
    files: document.otherFiles,
  }
}

/** Throws BrokenReference or SchemaTooLarge. */
const compileTool = (
  document: ApiDocument,
  operation: ApiOperation,
  name: string,
  settings: CompileSettings,
): CompiledTool => {
  const { method, path } = operation
  const context = { writer: new SchemaWriter(document, 'input', MOST_PARTS), names: new ArgumentNames() }
  const { plans, args } = readParameters(document, operation, settings, context)
  const body = readRequestBody(document, operation, context)
  const { accept, isJsonOnly, outputSchema } = readSuccesses(document, operation)
  const [server] = readServerList(operation.servers)
  const definition = JSON.stringify({
    name,
    title: titleOf(operation),
    description: descriptionOf(operation),
    inputSchema: inputSchemaOf(body ? [...args, body.argument] : args, context.writer.defs),
    outputSchema,
    annotations: { title: titleOf(operation), ...annotationsOf(method), openWorldHint: true },
  })
  if (definition.length > MOST_SCHEMA_BYTES) throw new SchemaTooLarge('too many bytes')
  return {
    name,
    definition,
    plan: { method, path, parameters: plans, body: body?.plan, accept, isJsonOnly, ...(server && { server }) },
  }
}

const inputSchemaOf = (args: readonly ToolArgument[], defs: Readonly<Record<string, unknown>>): object => {
  const required = args.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  return {
    type: 'object',
    properties: Object.fromEntries(args.map(({ name, schema }) => [name, schema])),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
    ...(Object.keys(defs).length > 0 && { $defs: defs }),
  }
}

const titleOf = ({ members }: ApiOperation): string | undefined => textMember(members, 'summary')?.slice(0, 200)

/** Summary and description; without either, the request itself says the most. */
const descriptionOf = ({ method, path, members }: ApiOperation): string => {
  const [summary, description] = [textMember(members, 'summary'), textMember(members, 'description')]
  const texts = [members.deprecated === true ? 'Deprecated.' : undefined, summary, description]
  const said = [...new Set(texts.filter(text => text !== undefined && text.trim() !== ''))].join('\n\n')
  return (said === '' ? `${method} ${path}` : said).slice(0, MOST_DESCRIPTION)
}

const SAFE = { readOnlyHint: true, destructiveHint: false, idempotentHint: true }

/** What HTTP says about a method (RFC 9110, 9.2). Of POST it says nothing: the defaults of MCP hold. */
const ANNOTATIONS: Readonly<Record<string, object>> = {
  GET: SAFE,
  HEAD: SAFE,
  OPTIONS: SAFE,
  QUERY: SAFE,
  PUT: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  DELETE: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  PATCH: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
}

const annotationsOf = (method: string): object => {
  const known = ANNOTATIONS[method]
  return isApiObject(known) ? known : { readOnlyHint: false }
}
