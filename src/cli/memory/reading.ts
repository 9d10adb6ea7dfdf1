import { bytesText } from '../progress.ts'
import { table } from '../usage.ts'
import { type Action, countText, dayOf, indented, LIMIT, print, printable, printJson, wordOf } from './action.ts'
import type { Shown } from './memory-admin.ts'
import { ownerText } from './place.ts'

const NOTHING_FOUND = 'Nothing was found.\n'

const search: Action['run'] = async ({ words, flags, groups, limit, office }) => {
  const found = await office.passages(words.join(' '), groups, limit)
  if (flags.json) return printJson(found)
  return print(found.length === 0 ? NOTHING_FOUND : found.map(passageText).join('\n'))
}

const passageText = (passage: Shown): string => {
  const actor = wordOf(passage, 'actor')
  const about = [dayOf(wordOf(passage, 'valid_at')), wordOf(passage, 'group_id'), wordOf(passage, 'episode_name')]
  return `${printable(about.join('  '))}\n${indented(actor ? `${actor}: ${wordOf(passage, 'text')}` : wordOf(passage, 'text'))}\n`
}

const facts: Action['run'] = async ({ words, flags, groups, limit, office }) => {
  const found = await office.facts(words.join(' '), groups, limit)
  if (flags.json) return printJson(found)
  return print(found.length === 0 ? NOTHING_FOUND : found.map(factText).join(''))
}

const factText = (fact: Shown): string => {
  const [from, to] = [dayOf(wordOf(fact, 'valid_at')), dayOf(wordOf(fact, 'invalid_at') || wordOf(fact, 'expired_at'))]
  const time = [...(from ? [`since ${from}`] : []), ...(to ? [`until ${to}`] : [])].join(', ')
  const about = wordOf(fact, 'source_node_name')
  const sentence = wordOf(fact, 'fact')
  const whole = about === '' || about === 'Note' || sentence.includes(about) ? sentence : `${about}: ${sentence}`
  const said = printable(whole).replaceAll('\n', ' ').trim()
  return `${wordOf(fact, 'uuid')}  ${said}${time ? `  (${time})` : ''}\n`
}

const episodes: Action['run'] = async ({ flags, groups, limit, office }) => {
  const found = await office.episodes(groups, limit)
  if (flags.json) return printJson(found)
  if (found.length === 0) return print('There are no episodes.\n')
  const rows = found.map(episode => [
    wordOf(episode, 'uuid'),
    dayOf(wordOf(episode, 'valid_at')),
    wordOf(episode, 'group_id'),
    wordOf(episode, 'source'),
    printable(wordOf(episode, 'name')).replaceAll('\n', ' '),
  ])
  return print(table([['UUID', 'DATE', 'GROUP', 'SOURCE', 'NAME'], ...rows]))
}

const moment = (at: number | undefined): string | null => (at === undefined ? null : new Date(at).toISOString())

const stats: Action['run'] = async ({ flags, place, office }) => {
  const found = await office.stats()
  const { groups, jobs, firstAt, lastAt, ...rest } = found
  const span = { firstAt: moment(firstAt), lastAt: moment(lastAt) }
  if (flags.json) return printJson({ owner: ownerText(place.tenant), ...rest, groups, jobs, ...span })
  const sum = (key: 'episodes' | 'entities' | 'facts' | 'expired') =>
    groups.reduce((total, group) => total + group[key], 0)
  const row = (name: string, counts: Readonly<Record<'episodes' | 'entities' | 'facts' | 'expired', number>>) => [
    name,
    ...[counts.episodes, counts.entities, counts.facts, counts.expired].map(String),
  ]
  const all = { episodes: sum('episodes'), entities: sum('entities'), facts: sum('facts'), expired: sum('expired') }
  const where = place.database === undefined ? `in ${place.folder}` : 'in PostgreSQL'
  return print(
    `The memory of ${ownerText(place.tenant)}, ${where} (${rest.driver}), ${bytesText(rest.bytes)}\n\n` +
      table([
        ['GROUP', 'EPISODES', 'ENTITIES', 'FACTS', 'NO LONGER TRUE'],
        ...groups.map(group => row(group.group, group)),
        ...(groups.length > 1 ? [row('(all)', all)] : []),
      ]) +
      `\n${spanText(span)}${countText(rest.docs, 'passage')} to search, ${jobs.waiting + jobs.leased} jobs pending, ${jobs.failed} failed.\n`,
  )
}

const spanText = ({ firstAt, lastAt }: { firstAt: string | null; lastAt: string | null }): string =>
  firstAt && lastAt ? `From ${dayOf(firstAt)} to ${dayOf(lastAt)}; ` : ''

const jobs: Action['run'] = async ({ flags, groups, limit, office }) => {
  const found = await office.jobs(groups, limit)
  if (flags.json) return printJson(found)
  if (found.length === 0) return print('No background work waits.\n')
  const rows = found.map(job => [
    String(job.id),
    ...['kind', 'state', 'group_id'].map(key => wordOf(job, key)),
    String(job.attempts),
    printable(wordOf(job, 'error')).replaceAll('\n', ' '),
  ])
  return print(table([['ID', 'KIND', 'STATE', 'GROUP', 'ATTEMPTS', 'ERROR'], ...rows]))
}

const MANY = Number.MAX_SAFE_INTEGER

/** What looks and changes nothing. */
export const READING: Readonly<Record<string, Action>> = {
  search: {
    usage: 'search QUERY',
    summary: 'find what was told, in its own words',
    flags: LIMIT,
    words: [1, MANY],
    run: search,
  },
  facts: {
    usage: 'facts QUERY',
    summary: 'find facts, with the time they hold',
    flags: LIMIT,
    words: [1, MANY],
    run: facts,
  },
  episodes: { usage: 'episodes', summary: 'list what was told last', flags: LIMIT, words: [0, 0], run: episodes },
  stats: { usage: 'stats', summary: 'show how much there is', flags: {}, words: [0, 0], whole: true, run: stats },
  jobs: { usage: 'jobs', summary: 'list background work that waits or failed', flags: LIMIT, words: [0, 0], run: jobs },
}
