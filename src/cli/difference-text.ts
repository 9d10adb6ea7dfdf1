import { type Change, type ConfigDifference, type Detail, hasNoChanges } from '../config/difference.ts'

const SIGNS: Readonly<Record<Change['kind'], string>> = { added: '+', removed: '-', changed: '~' }

/** The differences between two configurations, one per line; `unchanged` if there are none. */
export const describeDifference = (difference: ConfigDifference, unchanged: string): string => {
  if (hasNoChanges(difference)) return `${unchanged}\n`
  const { servers, workspaces, policies, settings } = difference
  return [
    ...changeLines('server', servers),
    ...changeLines('workspace', workspaces),
    ...changeLines('policy', policies),
    ...changeLines('needs a restart:', settings),
    '',
  ].join('\n')
}

const changeLines = (what: string, changes: readonly Change[]): string[] =>
  changes.flatMap(({ name, kind, details }) => [`${SIGNS[kind]} ${what} ${name}`, ...details.map(detailLine)])

const detailLine = ({ at, from, to }: Detail): string => {
  if (from === undefined && to === undefined) return `    ${at} differs`
  if (from === undefined) return `    ${at}: ${to}`
  return `    ${at}: ${from} -> ${to ?? '(absent)'}`
}
