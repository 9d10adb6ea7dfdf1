import { createInterface } from 'node:readline/promises'
import type { MemoryAdmin } from '../../servers/memory/memory-admin.ts'
import type { ForgetPreview, Groups, PreviewedRow } from '../../servers/memory/store.ts'
import { type Flags, print, printError, printJson, textOf, UsageError } from '../usage.ts'
import { type Action, type ActionRequest, countText, printableLine } from './action.ts'
import { ownerText } from './target.ts'

type Forget = Parameters<MemoryAdmin['forget']>[0]
type ForgetProof = Awaited<ReturnType<MemoryAdmin['forget']>>

const FORGET_FLAGS: Flags = {
  subject: { value: 'NAME', help: 'everything that names this person or thing' },
  entity: { value: 'UUID', help: 'this entity and the facts about it' },
  yes: { help: 'do not ask for confirmation' },
  'dry-run': { help: 'list what would be erased, and erase nothing' },
}

const forget: Action['run'] = async request => {
  const { flags, admin } = request
  const targets = forgetTargets(request)
  if (flags['dry-run']) return preview(targets, request)
  const question = `Erase ${targets.map(targetText).join(' and ')} from the memory of ${ownerText(request.target.tenant)}?`
  if (!flags.yes && !(await confirm(question))) return printError('nothing was erased')
  const proofs: ForgetProof[] = []
  for (const target of targets) proofs.push(await admin.forget(target))
  const isClean = proofs.every(({ checked, gone }) => gone === checked)
  if (flags.json) return printJson(proofs, isClean ? 0 : 1)
  return print(proofs.map(proofText).join(''), isClean ? 0 : 1)
}

const KINDS = [
  ['episodes', 'episode', 'episodes'],
  ['entities', 'entity', 'entities'],
  ['facts', 'fact', 'facts'],
] as const
const MOST_SHOWN = 20 // of each kind

/** Lists what would go: what is named, and what goes with it. */
const preview = async (targets: readonly Forget[], { flags, admin }: ActionRequest): Promise<number> => {
  const found: { readonly target: Forget; readonly preview: ForgetPreview }[] = []
  for (const target of targets) found.push({ target, preview: await admin.previewForget(target) })
  if (flags.json) return printJson(found.map(({ preview }) => preview))
  return print(`${found.map(previewText).join('')}Nothing was erased.\n`)
}

const previewText = ({ target, preview }: { readonly target: Forget; readonly preview: ForgetPreview }): string => {
  const counts = KINDS.map(([key, one, many]) => countText(preview[key].length, one, many)).join(', ')
  const parts = KINDS.flatMap(([key, , many]) => [
    ...listed(
      `${many}`,
      preview[key].filter(({ isNamed }) => isNamed),
    ),
    ...listed(
      `${many} that go with them`,
      preview[key].filter(({ isNamed }) => !isNamed),
    ),
  ])
  return `To forget ${targetText(target)} would erase ${counts}.\n${parts.join('')}`
}

const listed = (title: string, rows: readonly PreviewedRow[]): string[] =>
  rows.length === 0
    ? []
    : [
        `${title}:\n`,
        ...rows.slice(0, MOST_SHOWN).map(({ uuid, text }) => `  ${uuid}  ${printableLine(text)}\n`),
        ...(rows.length > MOST_SHOWN ? [`  and ${rows.length - MOST_SHOWN} more; --json lists all\n`] : []),
      ]

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

/** Erases for good, or says what that would erase. */
export const FORGET: Action = {
  usage: 'forget',
  summary: 'erase a group, an entity or a subject for good',
  flags: FORGET_FLAGS,
  words: [0, 0],
  run: forget,
}
