import { createInterface } from 'node:readline/promises'
import type { MemoryAdmin } from '../../servers/memory/memory-admin.ts'
import type { Groups } from '../../servers/memory/store.ts'
import { type Flags, print, printError, printJson, textOf, UsageError } from '../usage.ts'
import { type Action, type ActionRequest, countText, printable, textIn } from './action.ts'
import { oneGroup, ownerText } from './target.ts'

type Forget = Parameters<MemoryAdmin['forget']>[0]
type ForgetProof = Awaited<ReturnType<MemoryAdmin['forget']>>

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

const FORGET_FLAGS: Flags = {
  subject: { value: 'NAME', help: 'everything that names this person or thing' },
  entity: { value: 'UUID', help: 'this entity and the facts about it' },
  yes: { help: 'do not ask for confirmation' },
}

const forget: Action['run'] = async request => {
  const { flags, admin } = request
  const targets = forgetTargets(request)
  const question = `Erase ${targets.map(targetText).join(' and ')} from the memory of ${ownerText(request.target.tenant)}?`
  if (!flags.yes && !(await confirm(question))) return printError('nothing was erased')
  const proofs: ForgetProof[] = []
  for (const target of targets) proofs.push(await admin.forget(target))
  const isClean = proofs.every(({ checked, gone }) => gone === checked)
  if (flags.json) return printJson(proofs, isClean ? 0 : 1)
  return print(proofs.map(proofText).join(''), isClean ? 0 : 1)
}

const forgetTargets = ({ flags, groups }: ActionRequest): readonly Forget[] => {
  const [name, uuid] = [textOf(flags, 'subject'), textOf(flags, 'entity')]
  if (name !== undefined && uuid !== undefined) throw new UsageError('--subject and --entity do not go together')
  if (name?.trim()) return [{ kind: 'subject', name, groups }]
  if (uuid?.trim()) return [{ kind: 'entity', uuid }]
  if (groups === 'all') throw new UsageError('expected what to forget: --subject NAME, --entity UUID or --group NAME')
  return groups.map(group => ({ kind: 'group', group }))
}

const targetText = (target: Forget): string => {
  switch (target.kind) {
    case 'group':
      return `everything in group ${target.group}`
    case 'entity':
      return `the entity ${target.uuid} and what is known of it`
    case 'subject':
      return `everything that names ${JSON.stringify(target.name)}${inText(target.groups)}`
  }
}

const inText = (groups: Groups): string => (groups === 'all' ? '' : ` in ${groups.join(', ')}`)

/** Asks the user at the terminal; without a terminal, --yes is required. */
const confirm = async (question: string): Promise<boolean> => {
  if (!process.stdin.isTTY)
    throw new UsageError('standard input is not a terminal; give --yes to erase without a question')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} This cannot be undone. [y/N] `)).trim())
  } finally {
    lines.close()
  }
}

const proofText = ({ erased, checked, gone, clean }: ForgetProof): string => {
  const { episodes, entities, facts } = erased
  if (episodes.length + entities.length + facts.length === 0) return 'Nothing was there to forget.\n'
  const counts = [
    countText(episodes.length, 'episode'),
    countText(entities.length, 'entity', 'entities'),
    countText(facts.length, 'fact'),
  ].join(', ')
  return `Erased ${counts}; ${leftText(checked, gone, clean)}.\n`
}

const leftText = (checked: number, gone: number, clean: boolean): string => {
  if (gone < checked)
    return `${checked - gone} of ${checked} pieces of their text are still there; close other programs that use this memory and forget again`
  return clean
    ? `none of ${checked} pieces of their text is left in the files`
    : `none of ${checked} pieces of their text is left in the tables (the logs, backups and replicas of the server are not searched)`
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
  forget: {
    usage: 'forget',
    summary: 'erase a group, an entity or a subject for good',
    flags: FORGET_FLAGS,
    words: [0, 0],
    run: forget,
  },
  retry: {
    usage: 'retry [ID]',
    summary: 'retry a failed background job, or all',
    flags: {},
    words: [0, 1],
    isUngrouped: true,
    run: retry,
  },
}
