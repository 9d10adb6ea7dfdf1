import type { LoginInfo, LoginList, LoginServerInfo } from '../../../admin/api/logins.ts'

/** A login, or a server that has none. */
export interface LoginRow {
  readonly key: string // also in the address
  readonly server: LoginServerInfo
  readonly login?: LoginInfo | undefined
}

export interface LoginVerdict {
  readonly state: 'ok' | 'warn' | 'error' | 'off'
  readonly label: string
}

/** All logins, and one row for each server without any. */
export const loginRows = ({ servers }: LoginList, search: string): readonly LoginRow[] => {
  const wanted = search.trim().toLowerCase()
  const rows = servers.flatMap((server): LoginRow[] =>
    server.logins.length === 0
      ? [{ key: server.name, server }]
      : server.logins.map(login => ({ key: `${server.name} ${login.principal ?? ''}`.trim(), server, login })),
  )
  return rows.filter(({ server, login }) => `${server.name} ${login?.principal ?? ''}`.toLowerCase().includes(wanted))
}

export const loginVerdict = ({ server, login }: LoginRow, now: number): LoginVerdict => {
  if (!login)
    return server.isDemanded
      ? { state: 'warn', label: 'Needs a login' }
      : { state: 'off', label: 'Has not asked for one' }
  const isOver = login.expires !== undefined && login.expires <= now && !login.canRefresh
  return isOver ? { state: 'error', label: 'Expired' } : { state: 'ok', label: 'Logged in' }
}

/** Whom a login belongs to. */
export const ownerOf = (
  { server, login }: LoginRow,
  { principals }: Pick<LoginList, 'principals'>,
): string | undefined => {
  if (server.isShared) return 'All callers'
  if (!login) return undefined
  const known = principals.find(({ principal }) => principal === login.principal)
  return principalText(known ?? { principal: login.principal ?? '', name: login.principal ?? '' })
}

/** A principal as pages name it. */
export const principalText = ({ principal, name }: LoginList['principals'][number]): string => {
  if (principal === 'local') return 'User of this machine'
  return name === principal || name === '' ? principal : `${name} (${principal})`
}
