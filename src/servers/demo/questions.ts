import { elicit, elicitUrl, listRoots, sample } from '../define/questions.ts'
import { type Tool, tool } from '../define/tools.ts'

const NAME = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const
const COLOR = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] } as const
const CONFIRM = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } as const

/** Tools that ask the client's user or its model, one kind of question each. */
export const questionTools: readonly Tool[] = [
  tool({
    name: 'test_sampling',
    description: "Asks the client's model and returns what it said",
    input: {
      type: 'object',
      properties: { prompt: { type: 'string', description: 'The prompt to send to the LLM' } },
      required: ['prompt'],
    },
    run: async ({ prompt }, call) => {
      const { text } = await call.ask('answer', sample(prompt, { maxTokens: 100 }))
      return `LLM response: ${text}`
    },
  }),
  tool({
    name: 'test_elicitation',
    description: 'Shows the user a form with your message and returns what was filled in',
    input: {
      type: 'object',
      properties: { message: { type: 'string', description: 'The message to show the user' } },
      required: ['message'],
    },
    run: async ({ message }, call) => {
      const form = elicit(message, {
        type: 'object',
        properties: {
          username: { type: 'string', description: "User's response" },
          email: { type: 'string', description: "User's email address" },
        },
        required: ['username', 'email'],
      })
      return `User response: ${describe(await call.ask('response', form))}`
    },
  }),
  tool({
    name: 'test_elicitation_url',
    description: 'Sends the user to a page',
    run: async (_args, call) => {
      const { action } = await call.ask('visit', elicitUrl('Please visit this page', 'https://example.com/visit'))
      return `User response: action=${action}`
    },
  }),
  tool({
    name: 'test_streaming_elicitation',
    description: 'Reports progress, then asks the user',
    run: async (_args, call) => {
      call.require('elicitation')
      await call.progress(1, 2, 'About to ask')
      return `User response: ${describe(await call.ask('confirm', elicit('Please confirm', CONFIRM)))}`
    },
  }),
  tool({
    name: 'test_missing_capability',
    description: 'Fails for clients that do not declare sampling',
    run: (_args, call) => {
      call.require('sampling')
      return 'The client can sample'
    },
  }),
]

const confirmTool = (name: string, description: string, text: string): Tool =>
  tool({
    name: `test_input_required_result_${name}`,
    description,
    run: async (_args, call) => `${text} (${(await call.ask('confirm', elicit('Please confirm', CONFIRM))).action})`,
  })

/** The three questions as the 2026-07-28 scenarios of the conformance suite name them, alone and together. */
export const inputRequiredTools: readonly Tool[] = [
  tool({
    name: 'test_input_required_result_elicitation',
    description: 'Asks the user for a name',
    run: async (_args, call) => {
      const answer = await call.ask('user_name', elicit('What is your name?', NAME))
      return `Hello, ${answer.content?.name ?? 'stranger'}!`
    },
  }),
  tool({
    name: 'test_input_required_result_sampling',
    description: "Asks the client's model for a capital",
    run: async (_args, call) => {
      const { text } = await call.ask('capital_question', sample('What is the capital of France?', { maxTokens: 100 }))
      return `The model said: ${text}`
    },
  }),
  tool({
    name: 'test_input_required_result_list_roots',
    description: 'Asks for the roots of the client',
    run: async (_args, call) => {
      const roots = await call.ask('client_roots', listRoots())
      return `Roots: ${roots.map(({ uri }) => uri).join(', ') || 'none'}`
    },
  }),
  confirmTool('request_state', 'Asks for a confirmation; the call waits until the state comes back', 'state-ok'),
  confirmTool('tampered_state', 'Asks for a confirmation; a modified state is rejected', 'Confirmed'),
  tool({
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks the user, the model and for the roots, all at once',
    run: async (_args, call) => {
      const [user, greeting, roots] = await Promise.all([
        call.ask('user_name', elicit('What is your name?', NAME)),
        call.ask('greeting', sample('Generate a greeting', { maxTokens: 50 })),
        call.ask('client_roots', listRoots()),
      ])
      return `${greeting.text} ${user.content?.name ?? 'No one'} has ${roots.length} roots`
    },
  }),
  tool({
    name: 'test_input_required_result_multi_round',
    description: 'Asks twice, one after the other',
    run: async (_args, call) => {
      const first = await call.ask('step1', elicit('Step 1: What is your name?', NAME))
      const second = await call.ask('step2', elicit('Step 2: What is your favorite color?', COLOR))
      return `${first.content?.name ?? 'No one'} likes ${second.content?.color ?? 'no color'}`
    },
  }),
  tool({
    name: 'test_input_required_result_capabilities',
    description: 'Asks everything that the client can answer, and nothing else',
    run: async (_args, call) => {
      const answers = await Promise.all([
        call.can('elicitation') && call.ask('user_name', elicit('What is your name?', NAME)).then(describe),
        call.can('sampling') &&
          call.ask('greeting', sample('Generate a greeting', { maxTokens: 50 })).then(a => a.text),
        call.can('roots') && call.ask('client_roots', listRoots()).then(roots => `${roots.length} roots`),
      ])
      return answers.filter(answer => answer !== false).join('; ') || 'The client can answer no questions'
    },
  }),
]

/** Tools for the forms they show: every default, every kind of choice. */
export const formTools: readonly Tool[] = [
  tool({
    name: 'test_elicitation_sep1034_defaults',
    description: 'Shows a form with a default in every field',
    run: async (_args, call) => {
      const form = elicit('Please review the form fields with defaults', {
        type: 'object',
        properties: {
          name: { type: 'string', description: 'User name', default: 'John Doe' },
          age: { type: 'integer', description: 'User age', default: 30 },
          score: { type: 'number', description: 'User score', default: 95.5 },
          status: {
            type: 'string',
            description: 'User status',
            enum: ['active', 'inactive', 'pending'],
            default: 'active',
          },
          verified: { type: 'boolean', description: 'Verification status', default: true },
        },
        required: [],
      })
      return `Elicitation completed: ${describe(await call.ask('form', form))}`
    },
  }),
  tool({
    name: 'test_elicitation_sep1330_enums',
    description: 'Shows a form with every kind of choice',
    run: async (_args, call) => {
      const form = elicit('Please select options from the enum fields', {
        type: 'object',
        properties: {
          untitledSingle: {
            type: 'string',
            description: 'Select one option',
            enum: ['option1', 'option2', 'option3'],
          },
          titledSingle: {
            type: 'string',
            description: 'Select one option with titles',
            oneOf: titled('Option'),
          },
          legacyEnum: {
            type: 'string',
            description: 'Select one option, the old way',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'],
          },
          untitledMulti: {
            type: 'array',
            description: 'Select several options',
            items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
          },
          titledMulti: {
            type: 'array',
            description: 'Select several options with titles',
            items: { anyOf: titled('Choice') },
          },
        },
        required: [],
      })
      return `Elicitation completed: ${describe(await call.ask('form', form))}`
    },
  }),
]

const titled = (noun: string) =>
  ['First', 'Second', 'Third'].map((ordinal, i) => ({ const: `value${i + 1}`, title: `${ordinal} ${noun}` }))

/** What a user did with a form, as text. */
const describe = ({ action, content }: { readonly action: string; readonly content?: unknown }): string =>
  `action=${action}, content=${JSON.stringify(content ?? {})}`
