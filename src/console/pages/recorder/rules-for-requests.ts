import { META } from '../../../protocol/meta.ts'
import { MODERN } from '../../../protocol/revisions.ts'
import type { JsonChange } from './diff.ts'
import { docsReference, type ExplainRule, revisionText, specReference } from './explain.ts'
import { stringAt } from './json-node.ts'

// What the gateway changes in requests and notifications of clients: src/eras, src/upstreams/*/envelope.ts,
// src/upstreams/session/call.ts, src/workspace/catalog/names.ts, src/workspace/routing/uris.ts, src/workspace/policy/overlays.ts.

const ENVELOPE = specReference('basic', 'basic protocol')
const HANDSHAKE = docsReference('eras.md')
const WORKSPACES = docsReference('workspaces.md')
const PROGRESS = specReference('basic/patterns/progress', 'progress')
const MRTR = specReference('basic/patterns/mrtr', 'multi round-trip requests')

const meta = (key: string) => ['params', '_meta', key]

/** A member that legacy servers get once, in the handshake. */
const inHandshake = (key: string, text: ExplainRule['text']): ExplainRule => ({
  path: meta(key),
  kinds: ['removed'],
  to: 'legacy',
  text,
  reference: HANDSHAKE,
})

/** A member that modern servers get in each request. */
const inEachRequest = (key: string, text: string, reference = ENVELOPE): ExplainRule => ({
  path: meta(key),
  kinds: ['added', 'changed'],
  to: 'modern',
  text,
  reference,
})

const ALIAS = /^(x-mcp-[a-z0-9-]{1,20}\+|ui:\/\/[a-z0-9-]{1,20}\.gw\/)/

/** Whether a change replaces an alias that the workspace gave to a URI. */
const isAliasChange = ({ before, after }: JsonChange): boolean =>
  [before, after].some(node => node !== undefined && ALIAS.test(stringAt(node, []) ?? ''))

const ALIAS_TEXT = 'Two servers of the workspace have this URI. The workspace shows the second one under an alias.'

export const ALIAS_RULE: Omit<ExplainRule, 'path'> = { when: isAliasChange, text: ALIAS_TEXT, reference: WORKSPACES }

export const REQUEST_RULES: readonly ExplainRule[] = [
  // An answer that travels in a retry.
  {
    path: ['params', 'inputResponses', '**'],
    kinds: ['moved'],
    roles: ['retry', 'answer'],
    text: 'The answer in the retry becomes the response to the question that the server is waiting with.',
    reference: MRTR,
  },
  {
    path: ['params', 'requestState'],
    kinds: ['removed'],
    to: 'legacy',
    text: 'The state was made by the gateway: it names the call that is parked there.',
    reference: HANDSHAKE,
  },
  {
    path: ['params', '**'],
    kinds: ['removed'],
    roles: ['retry', 'answer'],
    text: 'The server is still running this call. Only the answer is sent to it; the tool runs once.',
    reference: HANDSHAKE,
  },
  {
    path: ['method'],
    roles: ['retry', 'answer'],
    text: 'The server is still running this call. Only the answer is sent to it; the tool runs once.',
    reference: HANDSHAKE,
  },
  {
    path: ['params', 'inputResponses', '**'],
    kinds: ['moved', 'added'],
    roles: ['answer', 'retry'],
    text: `A ${MODERN} server is asked again with the answer: the call is repeated, with the response of the client in it.`,
    reference: MRTR,
  },
  {
    path: ['params', 'requestState'],
    kinds: ['added'],
    text: 'The state that the server gave with its question. It is returned byte for byte.',
    reference: MRTR,
  },
  {
    path: ['params', '**'],
    kinds: ['added'],
    roles: ['answer', 'retry'],
    text: 'The call of the client is sent again, with the answer.',
    reference: MRTR,
  },
  {
    path: ['method'],
    roles: ['answer', 'retry'],
    text: 'The call of the client is sent again, with the answer.',
    reference: MRTR,
  },
  {
    path: ['params', 'inputResponses'],
    kinds: ['removed'],
    to: 'legacy',
    text: 'A legacy server does not know answers in a request.',
    reference: MRTR,
  },
  {
    path: ['params', 'requestState'],
    kinds: ['removed'],
    text: 'The state was made by the gateway: it names the call that is parked there.',
    reference: HANDSHAKE,
  },

  // Ids and tokens.
  {
    path: ['id'],
    flow: 'toServer',
    text: 'The gateway has request ids of its own on each connection, so that two clients cannot collide.',
    reference: ENVELOPE,
  },
  {
    path: meta('progressToken'),
    flow: 'toServer',
    text: 'The gateway has a progress token of its own for each request to a server. Notifications get the token of the client back.',
    reference: PROGRESS,
  },
  {
    path: ['params', 'progressToken'],
    flow: 'toServer',
    text: 'Progress of an answer carries the token of the question on this connection.',
    reference: PROGRESS,
  },
  {
    path: ['params', 'requestId'],
    methods: ['notifications/cancelled'],
    text: 'The request is named by the id that it has on this connection.',
    reference: specReference('basic/patterns/cancellation', 'cancellation'),
  },

  // The envelope.
  inHandshake(
    META.protocolVersion,
    ({ to }) => `A ${revisionText(to)} server agreed on its revision in the handshake. Its requests do not repeat it.`,
  ),
  inHandshake(
    META.clientInfo,
    ({ to }) => `A ${revisionText(to)} server learns the name of the client once, in the handshake.`,
  ),
  inHandshake(
    META.clientCapabilities,
    ({ to }) =>
      `A ${revisionText(to)} server learns the capabilities of the client once, in the handshake. The gateway opened the session with these.`,
  ),
  inHandshake(
    META.logLevel,
    'A legacy server has one log level for the whole session. The gateway sends logging/setLevel if it needs more.',
  ),
  inEachRequest(META.protocolVersion, `${MODERN} has no handshake: every request names its revision.`),
  inEachRequest(
    META.clientInfo,
    `${MODERN} has no handshake: every request names the client. The gateway knows it from initialize.`,
  ),
  {
    path: [...meta(META.clientCapabilities), '**'],
    to: 'modern',
    text: `${MODERN} has no handshake: every request declares what the client can do. The gateway knows it from initialize.`,
    reference: ENVELOPE,
  },
  inEachRequest(
    META.logLevel,
    `${MODERN} has no logging/setLevel: every request carries the level that the client has set, or the default.`,
    specReference('server/utilities/logging', 'logging'),
  ),
  ...['traceparent', 'tracestate', 'baggage'].map(
    (key): ExplainRule => ({
      path: meta(key),
      text: 'The gateway continues the trace: its own span is the parent of what the server does.',
      reference: docsReference('observability.md'),
    }),
  ),
  {
    path: meta(META.affinity),
    kinds: ['removed'],
    text: 'Tells the gateway which session to use; servers do not get it.',
    reference: HANDSHAKE,
  },

  // The workspace.
  {
    path: ['params', 'name'],
    methods: ['tools/call', 'prompts/get'],
    text: ({ server }) =>
      `The workspace shows names with their server in front, or as they are configured. ${server ?? 'The server'} has its own name for it.`,
    reference: WORKSPACES,
  },
  {
    path: ['params', 'ref', 'name'],
    text: 'The workspace shows names with their server in front; the server gets its own name.',
    reference: WORKSPACES,
  },
  { path: ['params', 'uri'], ...ALIAS_RULE, when: () => true },
  { path: ['params', 'ref', 'uri'], ...ALIAS_RULE, when: () => true },
  { path: ['params', 'arguments', '**'], ...ALIAS_RULE },
  {
    path: ['params', 'arguments', '**'],
    methods: ['tools/call'],
    text: 'The configuration of this tool fixes this argument, or gives its default.',
    reference: WORKSPACES,
  },
  {
    path: ['params', 'cursor'],
    text: 'The gateway has cursors of its own: its lists contain those of several servers, or come from its cache.',
    reference: WORKSPACES,
  },

  // Members that older servers reject.
  {
    path: ['params', 'context'],
    kinds: ['removed'],
    methods: ['completion/complete'],
    text: ({ to }) => `Completion has no context in ${revisionText(to)}, and some servers reject unknown members.`,
    reference: HANDSHAKE,
  },
  {
    path: ['params', 'message'],
    kinds: ['removed'],
    methods: ['notifications/progress'],
    text: ({ to }) => `Progress has no message in ${revisionText(to)}.`,
    reference: PROGRESS,
  },
  {
    path: ['params', 'notifications', '**'],
    methods: ['subscriptions/listen'],
    text: 'Listeners share one subscription at the server: it asks for what all of them need.',
    reference: HANDSHAKE,
  },
  {
    path: ['method'],
    methods: ['initialize', 'server/discover'],
    text: `${MODERN} has no handshake: the gateway answers initialize from server/discover, and the reverse.`,
    reference: HANDSHAKE,
  },
  {
    path: ['params', '**'],
    flow: 'toServer',
    methods: ['initialize', 'server/discover'],
    text: `${MODERN} has no handshake: what a client says about itself once, in initialize, is in each request there.`,
    reference: HANDSHAKE,
  },
]
