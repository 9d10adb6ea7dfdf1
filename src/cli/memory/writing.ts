import { createInterface } from 'node:readline/promises'
import { type Flags, textOf, UsageError } from '../usage.ts'
import { type Action, complain, countText, print, printable, printJson, type Request, wordOf } from './action.ts'
import type { Forget, Groups, Proof } from './memory-admin.ts'
import { oneGroup, ownerText } from './place.ts'

const ADD_FLAGS: Flags = {
  name: { value: 'TITLE', help: 'its title (its first words)' },
  at: { value: 'DATE', help: 'when it happened, ISO 8601 (now)' },
  source: { value: 'KIND', help: 'what it is: text, message ("actor: text" lines) or json (text)' },
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

const add: Action['run'] = async ({ words, flags, groups, office }) => {
  const isInput = words.length === 0 || (words.length === 1 && words[0] === '-')
  const text = isInput ? await readInput() : words.join(' ')
  if (text.trim() === '') return complain('the text is empty: there is nothing to remember')
  const added = await office.add({
    text,
    name: textOf(flags, 'name'),
    group: oneGroup(groups),
    source: textOf(flags, 'source') ?? 'text',
    at: textOf(flags, 'at'),
    saga: textOf(flags, 'saga'),
  })
  if (flags.json) return printJson(added)
  const name = JSON.stringify(printable(wordOf(added, 'name')))
  if (added.outcome === 'same') return print(`${name} was there already, as ${wordOf(added, 'uuid')}.\n`)
  return print(`Remembered ${name} in group ${wordOf(added, 'group_id')}, as ${wordOf(added, 'uuid')}.\n`)
}

const FORGET_FLAGS: Flags = {
  subject: { value: 'NAME', help: 'everything that names this person or thing' },
  entity: { value: 'UUID', help: 'this entity and the facts about it' },
  yes: { help: 'do not ask' },
}

const forget: Action['run'] = async request => {
  const { flags, office } = request
  const whats = forgottenBy(request)
  if (
    !flags.yes &&
    !(await isSure(`Erase ${whats.map(whatText).join(' and ')} from the memory of ${ownerText(request.place.tenant)}?`))
  )
    return complain('nothing was erased')
  const proofs: Proof[] = []
  for (const what of whats) proofs.push(await office.forget(what))
  const isClean = proofs.every(({ checked, gone }) => gone === checked)
  if (flags.json) return printJson(proofs, isClean ? 0 : 1)
  return print(proofs.map(proofText).join(''), isClean ? 0 : 1)
}

const forgottenBy = ({ flags, groups }: Request): readonly Forget[] => {
  const [name, uuid] = [textOf(flags, 'subject'), textOf(flags, 'entity')]
  if (name !== undefined && uuid !== undefined) throw new UsageError('--subject and --entity do not go together')
  if (name?.trim()) return [{ kind: 'subject', name, groups }]
  if (uuid?.trim()) return [{ kind: 'entity', uuid }]
  if (groups === 'all') throw new UsageError('expected what to forget: --subject NAME, --entity UUID or --group NAME')
  return groups.map(group => ({ kind: 'group', group }))
}

const whatText = (what: Forget): string => {
  switch (what.kind) {
    case 'group':
      return `everything in group ${what.group}`
    case 'entity':
      return `the entity ${what.uuid} and what is known of it`
    case 'subject':
      return `everything that names ${JSON.stringify(what.name)}${inText(what.groups)}`
  }
}

const inText = (groups: Groups): string => (groups === 'all' ? '' : ` in ${groups.join(', ')}`)

/** Asks whoever sits at the terminal; without one, the answer has to be given beforehand. */
const isSure = async (question: string): Promise<boolean> => {
  if (!process.stdin.isTTY) throw new UsageError('there is nobody to ask; give --yes to erase without a question')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} There is no way back. [y/N] `)).trim())
  } finally {
    lines.close()
  }
}

const proofText = ({ erased, checked, gone, clean }: Proof): string => {
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

const retry: Action['run'] = async ({ words: [word = 'all'], flags, office }) => {
  if (word !== 'all' && !/^\d{1,15}$/.test(word))
    throw new UsageError(`expected the number of a job, not ${JSON.stringify(word)}`)
  const count = await office.retry(word === 'all' ? 'all' : Number(word))
  if (flags.json) return printJson({ retried: count })
  if (count === 0 && word !== 'all')
    return complain(`no failed job has the number ${word}; "dragoman memory jobs" lists them`)
  if (count === 0) return print('No background work has failed; there is nothing to try again.\n')
  return print(`${countText(count, 'failed job')} will be tried again once a gateway runs.\n`)
}

/** What changes a memory. */
export const WRITING: Readonly<Record<string, Action>> = {
  add: {
    usage: 'add [TEXT]',
    summary: 'remember a text, or standard input',
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
    summary: 'let failed background work be tried again',
    flags: {},
    words: [0, 1],
    whole: true,
    run: retry,
  },
}
