import { META } from '../../../protocol/meta.ts'
import { MODERN } from '../../../protocol/revisions.ts'
import type { JsonChange } from './diff.ts'
import { docsReference, type ExplainContext, type ExplainRule, revisionText, specReference } from './explain.ts'
import { type JsonPath, nodeAt, stringAt } from './json-node.ts'
import { ALIAS_RULE } from './rules-for-requests.ts'

// What the gateway changes in results, errors and notifications of servers: src/eras, src/bridge/server-info.ts,
// src/fronts/stateless/envelope.ts, src/workspace/catalog, src/workspace/routing/member-frames.ts.

// The codes of src/protocol/errors.ts, which browsers cannot load.
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMS = -32602
const INTERNAL = -32603
const RESOURCE_NOT_FOUND = -32002
const MISSING_CAPABILITY = -32021
const URL_REQUIRED = -32042

const BASIC = specReference('basic', 'basic protocol')
const CACHING = specReference('server/utilities/caching', 'caching')
const TOOLS = specReference('server/tools', 'tools')
const ERAS = docsReference('eras.md')
const WORKSPACES = docsReference('workspaces.md')

/** The type of the content block that a change is in, at the server. */
const blockTypeOf = ({ path, kind }: JsonChange, { before }: ExplainContext): string | undefined => {
  if (kind === 'added') return undefined
  return stringAt(nodeAt(before, blockPath(path)), ['type'])
}

const blockPath = (path: JsonPath): JsonPath => {
  const at = path.lastIndexOf('content')
  return typeof path[at + 1] === 'number' ? path.slice(0, at + 2) : path.slice(0, at + 1)
}

/** The same for what was added to a block: the block is at the same place in both. */
const becomes = (from: string, to: string) => (change: JsonChange, context: ExplainContext) => {
  const type = change.kind === 'added' ? stringAt(nodeAt(context.before, blockPath(change.path)), ['type']) : undefined
  const now = stringAt(nodeAt(context.after, blockPath(change.path)), ['type'])
  return (type ?? blockTypeOf(change, context)) === from && now === to
}

const CONTENT: readonly JsonPath[] = [
  ['result', 'content', '*', '**'],
  ['result', 'messages', '*', 'content', '**'],
]
const forContent = (rule: Omit<ExplainRule, 'path'>): ExplainRule[] => CONTENT.map(path => ({ ...rule, path }))

const codeOf = (node: ExplainContext['before']): string | undefined => {
  const code = nodeAt(node, ['error', 'code'])
  return code?.kind === 'scalar' ? code.text : undefined
}
const isCode =
  (from: number, to?: number) =>
  (_change: JsonChange, { before, after }: ExplainContext): boolean =>
    codeOf(before) === String(from) && (to === undefined || codeOf(after) === String(to))

const LISTS = ['tools', 'prompts', 'resources', 'resourceTemplates']

export const RESULT_RULES: readonly ExplainRule[] = [
  {
    path: ['id'],
    flow: 'toClient',
    text: 'The response gets the id of the client’s own request back.',
    reference: BASIC,
  },
  {
    path: ['params', 'progressToken'],
    flow: 'toClient',
    text: 'The gateway has a progress token of its own at the server; the client gets the one that it chose.',
    reference: specReference('basic/patterns/progress', 'progress'),
  },
  {
    path: ['params', 'message'],
    kinds: ['removed'],
    methods: ['notifications/progress'],
    text: ({ to }) => `Progress has no message in ${revisionText(to)}.`,
    reference: specReference('basic/patterns/progress', 'progress'),
  },

  // Errors.
  {
    path: ['error', 'code'],
    when: isCode(RESOURCE_NOT_FOUND, INVALID_PARAMS),
    text: `“Resource not found” has the code ${INVALID_PARAMS} since ${MODERN}, and ${RESOURCE_NOT_FOUND} before.`,
    reference: specReference('server/resources#error-handling', 'resources'),
  },
  {
    path: ['error', 'code'],
    when: isCode(INVALID_PARAMS, RESOURCE_NOT_FOUND),
    text: `“Resource not found” has the code ${RESOURCE_NOT_FOUND} before ${MODERN}.`,
    reference: specReference('server/resources#error-handling', 'resources'),
  },
  {
    path: ['error', '**'],
    when: isCode(MISSING_CAPABILITY, INTERNAL),
    text: `This error exists since ${MODERN}: a legacy client gets a message that names the missing capability.`,
    reference: ERAS,
  },
  {
    path: ['error', '**'],
    when: (_change, { after }) => nodeAt(after, ['error', 'data', 'upstreamCode']) !== undefined,
    text: 'The code of the server has another meaning in the client’s revision. It is in data.upstreamCode.',
    reference: specReference('basic#error-codes', 'error codes'),
  },
  ...(['error', 'result'] as const).map(
    (root): ExplainRule => ({
      path: [root, '**'],
      when: isCode(URL_REQUIRED),
      text: ({ to }) =>
        to.role === 'asks'
          ? 'A legacy server fails with the links that the user must open. Here they are questions, and the call is sent again.'
          : 'The client cannot open links: they become a text that a model can pass on.',
      reference: specReference('client/elicitation', 'elicitation'),
    }),
  ),
  ...(['error', 'result'] as const).map(
    (root): ExplainRule => ({
      path: [root, '**'],
      methods: ['completion/complete'],
      when: isCode(METHOD_NOT_FOUND),
      text: 'The server cannot complete, which servers of its revision do not announce: the client gets an empty list.',
      reference: ERAS,
    }),
  ),

  // Types of results, cache hints, identity.
  {
    path: ['result', 'resultType'],
    kinds: ['added', 'changed'],
    to: 'modern',
    text: `${MODERN} requires a type on every result. Earlier servers do not send one.`,
    reference: BASIC,
  },
  {
    path: ['result', 'resultType'],
    kinds: ['removed'],
    text: `Results have a type since ${MODERN}. Clients before it may reject the unknown member.`,
    reference: BASIC,
  },
  ...['ttlMs', 'cacheScope'].flatMap((key): ExplainRule[] => [
    {
      path: ['result', key],
      kinds: ['added'],
      text: `${MODERN} requires cache hints on this result. Without a hint of the server it is stale at once, and for this caller only.`,
      reference: CACHING,
    },
    {
      path: ['result', key],
      kinds: ['removed'],
      text: `Cache hints exist since ${MODERN}. The gateway uses them for its own cache.`,
      reference: CACHING,
    },
    {
      path: ['result', key],
      kinds: ['changed'],
      text: 'The gateway keeps lists in a cache: it gives the time that is left, and the narrowest scope.',
      reference: CACHING,
    },
  ]),
  {
    path: ['result', '_meta', META.serverInfo],
    kinds: ['added'],
    text: 'A legacy server gives its name once, in the handshake; modern clients read it on each result.',
    reference: BASIC,
  },
  {
    path: ['result', '_meta', META.serverInfo],
    kinds: ['removed'],
    text: 'A legacy client learnt the name of the server in the handshake.',
    reference: ERAS,
  },
  ...(['result', 'params'] as const).map(
    (root): ExplainRule => ({
      path: [root, '_meta', META.subscriptionId],
      text: `Names the subscription that a message belongs to: the id of the client’s own request. It exists since ${MODERN}.`,
      reference: specReference('basic/patterns/subscriptions', 'subscriptions'),
    }),
  ),
  {
    path: ['result', '_meta', META.unavailable],
    text: 'The gateway names the servers that this list lacks because they do not answer.',
    reference: WORKSPACES,
  },
  {
    path: ['result', '_meta', META.login],
    text: 'The gateway tells where the user can log in to this server.',
    reference: docsReference('oauth.md'),
  },
  {
    path: ['result', '_meta', META.relatedTask],
    kinds: ['removed'],
    text: `Tasks are an extension in ${MODERN}; this member belongs to the older form.`,
    reference: ERAS,
  },

  // Content.
  ...forContent(ALIAS_RULE),
  ...forContent({
    when: becomes('audio', 'resource'),
    text: ({ to }) => `${revisionText(to)} has no audio: the block becomes an embedded resource with the same bytes.`,
    reference: ERAS,
  }),
  ...forContent({
    when: becomes('resource_link', 'text'),
    text: ({ to }) => `${revisionText(to)} has no resource links: the block becomes a text with the name and the URI.`,
    reference: ERAS,
  }),
  {
    path: ['result', 'content', '*'],
    kinds: ['added'],
    when: (_change, { before }) => nodeAt(before, ['result', 'structuredContent']) !== undefined,
    text: ({ to }) => `${revisionText(to)} has no structured content: it is repeated as text.`,
    reference: TOOLS,
  },
  {
    path: ['result', 'content'],
    kinds: ['added'],
    when: ({ after }) => after?.kind === 'array' && after.elements.length === 0,
    text: 'Modern clients reject a tool result without content: the gateway adds an empty list.',
    reference: TOOLS,
  },
  {
    path: ['result', 'structuredContent', '**'],
    text: `Before ${MODERN} structured content is an object: another value becomes {"result": value}.`,
    reference: TOOLS,
  },
  { path: ['result', 'contents', '*', 'uri'], ...ALIAS_RULE },
  { path: ['params', 'uri'], flow: 'toClient', ...ALIAS_RULE },
  { path: ['result', '_meta', '**'], ...ALIAS_RULE },

  // Lists.
  ...LISTS.flatMap((list): ExplainRule[] => [
    {
      path: ['result', list, '*', 'name'],
      kinds: ['changed'],
      text: 'The workspace shows the name with its server in front, or as it is configured.',
      reference: WORKSPACES,
    },
    {
      path: ['result', list, '*', '_meta', META.origin],
      text: 'The gateway adds the server, and the name that it has there.',
      reference: WORKSPACES,
    },
    {
      path: ['result', list, '*'],
      kinds: ['removed'],
      text: 'The client does not see it: a policy of the workspace or of the token hides it, or it is not valid.',
      reference: WORKSPACES,
    },
    {
      path: ['result', list, '*'],
      kinds: ['added'],
      text: 'It comes from another server of the workspace, or from the gateway.',
      reference: WORKSPACES,
    },
    { path: ['result', list, '*', '**'], ...ALIAS_RULE },
  ]),
  {
    path: ['result', 'tools', '*', 'execution'],
    kinds: ['removed'],
    text: ({ to }) => `${revisionText(to)} has no tasks in this form, so no tool may offer them.`,
    reference: ERAS,
  },
  {
    path: ['result', 'tools', '*', 'annotations', '**'],
    when: ({ path, kind }) => kind === 'added' && (path.at(-1) === 'title' || path.at(-1) === 'annotations'),
    text: ({ to }) => `${revisionText(to)} shows a title only if it is among the annotations.`,
    reference: ERAS,
  },
  {
    path: ['result', 'tools', '*', 'outputSchema', '**'],
    text: `Before ${MODERN} the schema of an output describes an object; clients reject the whole list otherwise.`,
    reference: TOOLS,
  },
  {
    path: ['result', 'tools', '*', 'inputSchema', '**'],
    when: ({ before }) => before?.kind === 'scalar' && (before.text === 'true' || before.text === 'false'),
    text: `true and false are schemas of a property only since ${MODERN}.`,
    reference: TOOLS,
  },
  ...['title', 'description', 'annotations', 'inputSchema'].map(
    (key): ExplainRule => ({
      path: ['result', 'tools', '*', key, '**'],
      text: 'The configuration of the workspace changes how this tool is shown.',
      reference: WORKSPACES,
    }),
  ),
  {
    path: ['result', 'nextCursor'],
    text: 'The gateway has cursors of its own: its lists contain those of several servers, or come from its cache.',
    reference: WORKSPACES,
  },

  // Handshake and discovery.
  {
    path: ['result', 'supportedVersions', '**'],
    text: 'The gateway lists the revisions that it serves, whatever the server supports.',
    reference: specReference('server/discover', 'discovery'),
  },
  {
    path: ['result', 'capabilities', '**'],
    methods: ['server/discover', 'initialize'],
    text: 'Capabilities are those that this client’s revision knows, of all servers of the workspace.',
    reference: ERAS,
  },
  {
    path: ['result', '**'],
    methods: ['server/discover', 'initialize'],
    text: `The gateway answers the handshake itself: ${MODERN} has server/discover, earlier revisions have initialize.`,
    reference: ERAS,
  },
]
