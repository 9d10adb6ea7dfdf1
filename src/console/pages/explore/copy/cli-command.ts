import { OLDEST } from '../../../../protocol/revisions.ts'
import { stringifyExact } from '../../../exact-json.ts'
import { argumentsOf, type CopiedRequest, subjectOf, TOKEN_VARIABLE } from './copied-request.ts'
import { quoteWithVariables, quoteWord } from './shell-quote.ts'

const COMMANDS: Readonly<Record<string, string>> = {
  'tools/call': 'call',
  'prompts/get': 'prompt',
  'resources/read': 'read',
}

/** The request as a `dragoman` command, to the same URL in the same revision. */
export const cliCommand = (request: CopiedRequest): string => {
  const { method, revision, url, needsToken } = request
  const args = argumentsOf(request)
  const isOldest = revision === OLDEST
  const words = [
    'dragoman',
    COMMANDS[method] ?? 'call',
    isOldest ? `${url}/sse` : url,
    subjectOf(request),
    ...(method === 'prompts/get' ? Object.entries(args).map(([name, value]) => `${name}=${value}`) : objectWord(args)),
  ]
  const flags = ['--revision', revision, ...(isOldest ? ['--transport', 'sse'] : [])]
  const token = needsToken ? [`--token ${quoteWithVariables(`$${TOKEN_VARIABLE}`)}`] : []
  return [...[...words, ...flags].map(quoteFlag), ...token].join(' ')
}

/** One JSON object: every kind of value, and every digit of a number. */
const objectWord = (args: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(args).length === 0 ? [] : [stringifyExact(args)]

const quoteFlag = (word: string): string => (/^--[a-z]+$/.test(word) ? word : quoteWord(word))
