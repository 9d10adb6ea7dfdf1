import { META } from '../../../protocol/meta.ts'
import { MODERN } from '../../../protocol/revisions.ts'
import { docsReference, type ExplainRule, revisionText, specReference } from './explain.ts'
import { type JsonPath, stringAt } from './json-node.ts'

// What the gateway changes in questions of servers and in answers of clients: src/bridge/parking, src/bridge/rounds.ts,
// src/eras/form.ts, src/eras/sampling.ts, src/workspace/routing/member-frames.ts.

const MRTR = specReference('basic/patterns/mrtr', 'multi round-trip requests')
const ELICITATION = specReference('client/elicitation', 'elicitation')
const SAMPLING = specReference('client/sampling', 'sampling')
const ERAS = docsReference('eras.md')

/** The params of a question: of a request, or inside a result. */
const QUESTIONS: readonly JsonPath[] = [['params'], ['result', 'inputRequests', '*', 'params']]
const forQuestions = (path: JsonPath, rule: Omit<ExplainRule, 'path'>): ExplainRule[] =>
  QUESTIONS.map(root => ({ flow: 'toClient' as const, ...rule, path: [...root, ...path] }))

export const QUESTION_RULES: readonly ExplainRule[] = [
  // The form of the question itself.
  ...forQuestions(['message'], {
    kinds: ['changed'],
    when: ({ after }, { server }) => stringAt(after, [])?.startsWith(`[${server}] `) === true,
    text: 'The client sees the gateway as its only server: the name of the server that asks is put in front.',
    reference: docsReference('workspaces.md'),
  }),
  ...forQuestions(['requestedSchema', '**'], {
    text: ({ to }) =>
      `${revisionText(to)} has plain forms: titled choices are enum and enumNames, and a choice of several is one checkbox for each.`,
    reference: ELICITATION,
  }),
  ...forQuestions(['elicitationId'], {
    kinds: ['added'],
    text: `Links have an id before ${MODERN}: notifications/elicitation/complete names it.`,
    reference: ELICITATION,
  }),
  ...forQuestions(['messages', '**'], {
    methods: ['sampling/createMessage'],
    text: ({ to }) => `${revisionText(to)} has one block in a message: messages with several are split.`,
    reference: SAMPLING,
  }),
  ...forQuestions(['tools', '**'], {
    methods: ['sampling/createMessage'],
    text: `Before ${MODERN} the schemas of tools describe objects.`,
    reference: SAMPLING,
  }),
  ...forQuestions(['task'], {
    kinds: ['removed'],
    text: `Tasks are an extension in ${MODERN}; questions have none.`,
    reference: ERAS,
  }),
  ...forQuestions(['_meta', META.relatedTask], {
    kinds: ['removed'],
    text: `Tasks are an extension in ${MODERN}; questions have none.`,
    reference: ERAS,
  }),
  ...forQuestions(['_meta', 'progressToken'], {
    roles: ['question', 'asks'],
    kinds: ['removed'],
    text: 'Progress of an answer cannot be reported in this form.',
    reference: MRTR,
  }),
  ...forQuestions(['_meta', 'progressToken'], {
    roles: ['question', 'question'],
    text: 'The token belongs to the connection of the server: the gateway has another one at the client.',
    reference: specReference('basic/patterns/progress', 'progress'),
  }),

  // A question that becomes a result, and the reverse.
  {
    path: ['result', 'inputRequests', '**'],
    kinds: ['moved'],
    roles: ['question', 'asks'],
    text: `A ${MODERN} client gets no requests: the question of the server travels in the result, under a key that the answer repeats.`,
    reference: MRTR,
  },
  {
    path: ['result', 'resultType'],
    roles: ['question', 'asks'],
    text: 'The request of the client ends with the question. The call to the server stays open, parked at the gateway.',
    reference: MRTR,
  },
  {
    path: ['result', 'requestState'],
    roles: ['question', 'asks'],
    text: 'Names the parked call: encrypted, valid once, for this user and this request. The retry of the client carries it.',
    reference: ERAS,
  },
  {
    path: ['result', 'inputRequests', '**'],
    kinds: ['added'],
    roles: ['question', 'asks'],
    text: 'Another question that the server asked at the same time.',
    reference: MRTR,
  },
  {
    path: ['id'],
    roles: ['question', 'asks'],
    text: 'The request of the server keeps its own id at the gateway; the client gets the id of the request that ends here.',
    reference: MRTR,
  },
  {
    path: ['result', 'inputRequests', '**'],
    kinds: ['moved'],
    roles: ['asks', 'question'],
    text: ({ to }) => `A ${revisionText(to)} client is asked with a request on its own stream.`,
    reference: ERAS,
  },
  {
    path: ['id'],
    roles: ['asks', 'question'],
    text: 'The gateway asks the client with an id of its own.',
    reference: ERAS,
  },
  {
    path: ['result', '**'],
    kinds: ['removed'],
    roles: ['asks', 'question'],
    text: 'The gateway keeps it until the client has answered, and then sends the call again with the answer.',
    reference: MRTR,
  },
  {
    path: ['id'],
    roles: ['question', 'question'],
    text: 'The gateway asks the client with an id of its own.',
    reference: ERAS,
  },

  // Answers.
  {
    path: ['id'],
    flow: 'toServer',
    roles: ['answer', 'answer'],
    text: 'The answer gets the id of the question that the server asked.',
    reference: specReference('basic', 'basic protocol'),
  },
  {
    path: ['id'],
    flow: 'toServer',
    roles: ['retry', 'answer'],
    text: 'The answer gets the id of the question that the server asked.',
    reference: MRTR,
  },
  ...(
    [
      ['result', 'content'],
      ['params', 'inputResponses', '*', 'content'],
    ] as const
  ).map(
    (path): ExplainRule => ({
      path: [...path, '**'],
      flow: 'toServer',
      text: ({ from }) =>
        `The answer is in the form of ${revisionText(from)}: checkboxes become a list again, several blocks become one.`,
      reference: ERAS,
    }),
  ),
  {
    path: ['error', '**'],
    flow: 'toServer',
    roles: ['answer', 'answer'],
    text: 'The client has refused: the server gets the refusal in its own form.',
    reference: ERAS,
  },
]
