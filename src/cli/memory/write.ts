import { type Flags, print, printError, printJson, textOf, UsageError } from '../usage.ts'
import { type Action, countText, printable, textIn } from './action.ts'
import { FORGET } from './forget.ts'
import { oneGroup } from './target.ts'

const ADD_FLAGS: Flags = {
  name: { value: 'TITLE', help: 'title (default: its first words)' },
  at: { value: 'DATE', help: 'when it happened, ISO 8601 (default: now)' },
  source: { value: 'KIND', help: 'text (default), message ("actor: text" lines) or json' },
  saga: { value: 'NAME', help: 'the chain of episodes it continues' },
}

const MOST_BYTES = 4 * 1024 * 1024

const readInput = async (): Promise<string> => {
  if (process.stdin.isTTY) throw new UsageError('expected a text to add, as words or on standard input')
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer)
    bytes += (chunk as Buffer).byteLength
    if (bytes > MOST_BYTES)
      throw new UsageError('standard input is too large for one episode; use "dragoman memory import -"')
  }
  return Buffer.concat(chunks).toString('utf8')
}

const add: Action['run'] = async ({ words, flags, groups, admin }) => {
  const isInput = words.length === 0 || (words.length === 1 && words[0] === '-')
  const text = isInput ? await readInput() : words.join(' ')
  if (text.trim() === '') return printError('the text is empty: there is nothing to remember')
  const added = await admin.add({
    text,
    name: textOf(flags, 'name'),
    group: oneGroup(groups),
    source: textOf(flags, 'source') ?? 'text',
    at: textOf(flags, 'at'),
    saga: textOf(flags, 'saga'),
  })
  if (flags.json) return printJson(added)
  const name = JSON.stringify(printable(textIn(added, 'name')))
  if (added.outcome === 'same') return print(`${name} was there already, as ${textIn(added, 'uuid')}.\n`)
  return print(`Remembered ${name} in group ${textIn(added, 'group_id')}, as ${textIn(added, 'uuid')}.\n`)
}

const retry: Action['run'] = async ({ words: [word = 'all'], flags, admin }) => {
  if (word !== 'all' && !/^\d{1,15}$/.test(word))
    throw new UsageError(`expected the number of a job, not ${JSON.stringify(word)}`)
  const count = await admin.retry(word === 'all' ? 'all' : Number(word))
  if (flags.json) return printJson({ retried: count })
  if (count === 0 && word !== 'all')
    return printError(`no failed job has the number ${word}; "dragoman memory jobs" lists them`)
  if (count === 0) return print('No background job has failed; there is nothing to retry.\n')
  return print(`${countText(count, 'failed job')} will be retried while a gateway runs.\n`)
}

/** The actions that change a memory. */
export const WRITE_ACTIONS: Readonly<Record<string, Action>> = {
  add: {
    usage: 'add [TEXT]',
    summary: 'add a text, or standard input',
    flags: ADD_FLAGS,
    words: [0, Number.MAX_SAFE_INTEGER],
    creates: true,
    run: add,
  },
  forget: FORGET,
  retry: {
    usage: 'retry [ID]',
    summary: 'retry a failed background job, or all',
    flags: {},
    words: [0, 1],
    isUngrouped: true,
    run: retry,
  },
}
