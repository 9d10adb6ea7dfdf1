import { findAnchors, isSchemaResource, rebaseSchema } from '../../protocol/json-schema.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { actionPath, taskPath } from '../http/request-url.ts'

/** A workspace in the OpenAPI document. */
export interface DescribedWorkspace {
  readonly name: string
  readonly tools: readonly Json[]
  readonly reason?: string // why some or all of its tools could not be listed
}

const SCHEMAS = '#/components/schemas/'
const ref = (name: string): PlainObject => ({ $ref: SCHEMAS + name })
const json = (schema: PlainObject): PlainObject => ({ 'application/json': { schema } })

const TOOL_RESULT: PlainObject = {
  type: 'object',
  description: 'The result of the tool; isError is true if the tool reports an error',
  properties: {
    content: { type: 'array', items: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] } },
    structuredContent: { description: 'The result as data, if the tool returns any' },
    isError: { type: 'boolean' },
  },
}

const ERROR: PlainObject = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'integer' },
        message: { type: 'string', description: 'What failed and what to do' },
        data: { description: 'Details; `reason` says why a server gave no answer' },
      },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
}

const PREFER: PlainObject = {
  name: 'Prefer',
  in: 'header',
  description: 'respond-async: answer at once with 202, and run the call as a task',
  schema: { type: 'string' },
}

const TASK: PlainObject = {
  type: 'object',
  description: 'A call that runs as a task',
  properties: {
    taskId: { type: 'string' },
    status: { type: 'string', enum: ['working', 'input_required', 'completed', 'failed', 'cancelled'] },
    statusMessage: { type: 'string' },
    createdAt: { type: 'string', format: 'date-time' },
    lastUpdatedAt: { type: 'string', format: 'date-time' },
    ttlMs: { type: 'integer' },
    pollIntervalMs: { type: 'integer' },
    inputRequests: { type: 'object', description: 'Open questions by key; answer them with PATCH' },
    result: ref('ToolResult'),
    error: { type: 'object' },
  },
  required: ['taskId', 'status'],
}

const ACCEPTED: PlainObject = {
  description: 'The call runs as a task; Location is its URL',
  headers: { Location: { schema: { type: 'string' } } },
  content: json(ref('Task')),
}

/** The task of a call: read, answered, cancelled. */
const taskOperations = (workspace: string, createId: (name: string) => string): PlainObject => {
  const responses = (status: number, response: PlainObject): PlainObject => ({
    [status]: response,
    404: { $ref: '#/components/responses/E404' },
  })
  const done: PlainObject = { description: 'Done' }
  return {
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    get: {
      ...{ operationId: createId(`${workspace}_task`), summary: 'Read a task, with its result', tags: [workspace] },
      responses: responses(200, { description: 'The task', content: json(ref('Task')) }),
    },
    patch: {
      ...{
        operationId: createId(`${workspace}_answer_task`),
        summary: 'Answer questions of a task',
        tags: [workspace],
      },
      requestBody: { required: true, content: json({ type: 'object', description: 'Answers by key of the question' }) },
      responses: responses(204, done),
    },
    delete: {
      ...{ operationId: createId(`${workspace}_cancel_task`), summary: 'Cancel a task', tags: [workspace] },
      responses: responses(204, done),
    },
  }
}

/** Descriptions of the error statuses. */
const FAILURES: Readonly<Record<string, string>> = {
  400: 'The body is not a JSON object',
  401: 'The token is missing or invalid',
  403: 'The token does not open this workspace, or the Origin is not allowed',
  404: 'Unknown tool or task',
  422: 'Invalid arguments',
  429: 'Too many requests; Retry-After says when to retry',
  501: 'The tool needs a client that can answer questions',
  502: 'The server of the tool failed or cannot be reached',
  503: 'The server of the tool is unavailable',
  504: 'The server of the tool did not answer in time',
}

/** An OpenAPI 3.1 document with one operation for each tool. */
export const writeOpenApi = (workspaces: readonly DescribedWorkspace[], version: string): Json => {
  const createId = createOperationIds()
  const paths: Record<string, PlainObject> = {}
  const schemas: Record<string, Json | PlainObject> = { ToolResult: TOOL_RESULT, Task: TASK, Error: ERROR }
  for (const { name: workspace, tools } of workspaces)
    for (const tool of tools) {
      const name = tool.get('name')?.asString()
      const path = name === undefined ? '' : actionPath(workspace, name)
      if (name === undefined || name === '' || Object.hasOwn(paths, path)) continue
      paths[path] = { post: operationOf(workspace, name, tool, createId(`${workspace}_${name}`), schemas) }
    }
  for (const { name: workspace, tools } of workspaces)
    if (tools.length > 0) paths[`${taskPath(workspace, '')}{id}`] = taskOperations(workspace, createId)
  return Json.of({
    openapi: '3.1.0',
    info: { title: 'Dragoman actions', version, description: 'Tools of MCP servers, each as one POST' },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    tags: workspaces.map(({ name, reason }) => ({ name, description: reason && `Incomplete: ${reason}` })),
    paths,
    components: {
      schemas,
      responses: {
        Accepted: ACCEPTED,
        ...Object.fromEntries(
          Object.entries(FAILURES).map(([status, description]) => [
            `E${status}`,
            { description, content: json(ref('Error')) },
          ]),
        ),
      },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  })
}

const operationOf = (
  workspace: string,
  name: string,
  tool: Json,
  id: string,
  schemas: Record<string, Json | PlainObject>,
): PlainObject => {
  const input = tool.get('inputSchema')
  const output = tool.get('outputSchema')
  schemas[`${id}.arguments`] = input?.isObject ? embedSchema(input, `${SCHEMAS}${id}.arguments`) : { type: 'object' }
  if (output?.isObject) schemas[`${id}.result`] = embedSchema(output, `${SCHEMAS}${id}.result`)
  const result = output?.isObject
    ? { allOf: [ref('ToolResult'), { properties: { structuredContent: ref(`${id}.result`) } }] }
    : ref('ToolResult')
  return {
    operationId: id,
    summary: tool.get('title')?.asString() ?? tool.at('annotations', 'title')?.asString() ?? name,
    description: tool.get('description')?.asString(),
    tags: [workspace],
    parameters: [PREFER],
    requestBody: {
      required: (input?.get('required')?.elements().length ?? 0) > 0,
      content: json(ref(`${id}.arguments`)),
    },
    responses: {
      200: {
        description: 'The result of the tool, also if the tool reports an error',
        content: {
          ...json(result),
          'text/event-stream': {
            schema: { type: 'string', description: 'Events `progress`, then one `result` or `error`' },
          },
        },
      },
      202: { $ref: '#/components/responses/Accepted' },
      ...Object.fromEntries(
        Object.keys(FAILURES).map(status => [status, { $ref: `#/components/responses/E${status}` }]),
      ),
    },
    'x-mcp-annotations': tool.get('annotations'),
  }
}

/** Creates unique operation ids that code generators accept. */
const createOperationIds = (): ((name: string) => string) => {
  const taken = new Set<string>()
  return name => {
    const plain = name.replace(/[^A-Za-z0-9_-]/g, '_')
    let id = plain
    for (let count = 2; taken.has(id); count++) id = `${plain}_${count}`
    taken.add(id)
    return id
  }
}

/** A tool's schema as part of the document, at the given JSON pointer; two tools may use the same name for an anchor. */
export const embedSchema = (schema: Json, pointer: string): Json =>
  isSchemaResource(schema) ? schema : rebaseSchema(schema, pointer, findAnchors(schema)).without('$schema')
