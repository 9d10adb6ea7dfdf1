import { elicit } from '../define/questions.ts'
import { type Tool, tool } from '../define/tools.ts'
import { told } from './questions.ts'

/** Tools whose point is the form they show: every default, every kind of choice. */
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
      return `Elicitation completed: ${told(await call.ask('form', form))}`
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
      return `Elicitation completed: ${told(await call.ask('form', form))}`
    },
  }),
]

const titled = (noun: string) =>
  ['First', 'Second', 'Third'].map((ordinal, i) => ({ const: `value${i + 1}`, title: `${ordinal} ${noun}` }))
