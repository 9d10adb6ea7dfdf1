import { bytesText } from '../progress.ts'
import { type Flags, print, printJson, table, textOf } from '../usage.ts'
import { type Action, countText, dayOf, LIMIT, type PresentedRow, printable, printableLine, textIn } from './action.ts'
import { ownerText } from './target.ts'

const NOTHING_FOUND = 'Nothing was found.\n'

const search: Action['run'] = async ({ words, flags, groups, limit, admin }) => {
  const found = await admin.passages(words.join(' '), groups, limit)
  if (flags.json) return printJson(found)
  return print(found.length === 0 ? NOTHING_FOUND : found.map(passageText).join('\n'))
}

const passageText = (passage: PresentedRow): string => {
  const actor = textIn(passage, 'actor')
  const about = [dayOf(textIn(passage, 'valid_at')), textIn(passage, 'group_id'), textIn(passage, 'episode_name')]
  const text = printable(actor ? `${actor}: ${textIn(passage, 'text')}` : textIn(passage, 'text'))
  return `${printable(about.join('  '))}\n${text.trim().replaceAll(/^/gm, '  ')}\n`
}

const AS_OF: Flags = { 'as-of': { value: 'DATE', help: 'only what was true then, ISO 8601' } }

const facts: Action['run'] = async ({ words, flags, groups, limit, admin }) => {
  const found = await admin.facts(words.join(' '), groups, limit, textOf(flags, 'as-of'))
  if (flags.json) return printJson(found)
  return print(found.length === 0 ? NOTHING_FOUND : found.map(factText).join(''))
}

const factText = (fact: PresentedRow): string => {
  const [from, to] = [dayOf(textIn(fact, 'valid_at')), dayOf(textIn(fact, 'invalid_at') || textIn(fact, 'expired_at'))]
  const time = [...(from ? [`since ${from}`] : []), ...(to ? [`until ${to}`] : [])].join(', ')
  const about = textIn(fact, 'source_node_name')
  const sentence = textIn(fact, 'fact')
  const whole = about === '' || about === 'Note' || sentence.includes(about) ? sentence : `${about}: ${sentence}`
  const said = printableLine(whole).trim()
  return `${textIn(fact, 'uuid')}  ${said}${time ? `  (${time})` : ''}\n`
}

const entities: Action['run'] = async ({ words, flags, groups, limit, admin }) => {
  const found = await admin.entities(words.join(' '), groups, limit)
  if (flags.json) return printJson(found)
  if (found.length === 0) return print(NOTHING_FOUND)
  const rows = found.map(entity => [
    textIn(entity, 'uuid'),
    textIn(entity, 'group_id'),
    String(entity.facts),
    printableLine((entity.labels as readonly string[]).filter(label => label !== 'Entity').join(', ')) || '-',
    printableLine(textIn(entity, 'name')),
  ])
  return print(table([['UUID', 'GROUP', 'FACTS', 'LABELS', 'NAME'], ...rows]))
}

const episodes: Action['run'] = async ({ flags, groups, limit, admin }) => {
  const found = await admin.episodes(groups, limit)
  if (flags.json) return printJson(found)
  if (found.length === 0) return print('There are no episodes.\n')
  const rows = found.map(episode => [
    textIn(episode, 'uuid'),
    dayOf(textIn(episode, 'valid_at')),
    textIn(episode, 'group_id'),
    textIn(episode, 'source'),
    printableLine(textIn(episode, 'name')),
  ])
  return print(table([['UUID', 'DATE', 'GROUP', 'SOURCE', 'NAME'], ...rows]))
}

const isoDate = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

const COUNTS = ['episodes', 'entities', 'facts', 'expired'] as const

const stats: Action['run'] = async ({ flags, target, admin }) => {
  const found = await admin.stats()
  const { groups, jobs, firstAt, lastAt, ...rest } = found
  const span = { firstAt: isoDate(firstAt), lastAt: isoDate(lastAt) }
  if (flags.json) return printJson({ owner: ownerText(target.tenant), ...rest, groups, jobs, ...span })
  const sum = (key: (typeof COUNTS)[number]) => String(groups.reduce((total, group) => total + group[key], 0))
  const where = target.database === undefined ? `in ${target.folder}` : 'in PostgreSQL'
  return print(
    `The memory of ${ownerText(target.tenant)}, ${where} (${rest.driver}), ${bytesText(rest.bytes)}\n\n` +
      table([
        ['GROUP', 'EPISODES', 'ENTITIES', 'FACTS', 'EXPIRED'],
        ...groups.map(group => [group.group, ...COUNTS.map(key => String(group[key]))]),
        ...(groups.length > 1 ? [['(all)', ...COUNTS.map(sum)]] : []),
      ]) +
      `\n${spanText(span)}${countText(rest.docs, 'passage')} to search, ${jobs.waiting + jobs.leased} jobs pending, ${jobs.failed} failed.\n`,
  )
}

const spanText = ({ firstAt, lastAt }: { firstAt: string | null; lastAt: string | null }): string =>
  firstAt && lastAt ? `From ${dayOf(firstAt)} to ${dayOf(lastAt)}; ` : ''

const jobs: Action['run'] = async ({ flags, groups, limit, admin }) => {
  const found = await admin.jobs(groups, limit)
  if (flags.json) return printJson(found)
  if (found.length === 0) return print('There are no background jobs.\n')
  const rows = found.map(job => [
    String(job.id),
    ...['kind', 'state', 'group_id'].map(key => textIn(job, key)),
    String(job.attempts),
    printableLine(textIn(job, 'error')),
  ])
  return print(table([['ID', 'KIND', 'STATE', 'GROUP', 'ATTEMPTS', 'ERROR'], ...rows]))
}

const MANY = Number.MAX_SAFE_INTEGER

/** The actions that read a memory. */
export const READ_ACTIONS: Readonly<Record<string, Action>> = {
  search: {
    usage: 'search QUERY',
    summary: 'search the passages of episodes',
    flags: LIMIT,
    words: [1, MANY],
    run: search,
  },
  facts: {
    usage: 'facts [QUERY]',
    summary: 'search facts with the time they are valid, or list the latest',
    flags: { ...LIMIT, ...AS_OF },
    words: [0, MANY],
    run: facts,
  },
  entities: {
    usage: 'entities [QUERY]',
    summary: 'search entities, or list those with the most facts',
    flags: LIMIT,
    words: [0, MANY],
    run: entities,
  },
  episodes: { usage: 'episodes', summary: 'list the latest episodes', flags: LIMIT, words: [0, 0], run: episodes },
  stats: { usage: 'stats', summary: 'show counts and size', flags: {}, words: [0, 0], isUngrouped: true, run: stats },
  jobs: { usage: 'jobs', summary: 'list waiting and failed background jobs', flags: LIMIT, words: [0, 0], run: jobs },
}
