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
  const { method, revision, url, needsToken, logLevel } = request
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
  const level = method === 'tools/call' ? ['--log-level', logLevel] : []
  const token = needsToken ? [`--token ${quoteWithVariables(`$${TOKEN_VARIABLE}`)}`] : []
  return lackOf(request) + [...[...words, ...flags, ...level].map(quoteFlag), ...token].join(' ')
}

/** What the request sends and the command has no option for, as a comment. */
const lackOf = ({ method, params, logLevel }: CopiedRequest): string => {
  const lacks = [
    ...(params._meta === undefined ? [] : ['_meta']),
    ...(method === 'tools/call' || logLevel === 'debug' ? [] : [`the log level ${logLevel}`]),
  ]
  return lacks.length === 0 ? '' : `# The command does not send ${lacks.join(' or ')}.\n`
}

/** One JSON object: every kind of value, and every digit of a number. */
const objectWord = (args: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(args).length === 0 ? [] : [stringifyExact(args)]

const quoteFlag = (word: string): string => (/^--[a-z-]+$/.test(word) ? word : quoteWord(word))
