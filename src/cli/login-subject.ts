import type { Daemon } from '../config/daemon-file.ts'
import type { LoginStatus } from '../protocol/oauth.ts'
import { requestDaemon } from './daemon-client.ts'
import { type Flags, type FlagValues, textOf, UsageError } from './usage.ts'

/** Whose login it is, and where. */
export interface LoginSubject {
  readonly server: string
  readonly principal: string
}

const LOCAL = 'local' // the principal of commands and stdio clients of the user who runs the daemon

export const PRINCIPAL_FLAG: Flags = {
  principal: { value: 'NAME', help: 'whose login it is (default: local, the user of this machine without a token)' },
}

export const principalIn = (flags: FlagValues): string => {
  const principal = textOf(flags, 'principal') ?? LOCAL
  if (principal === '') throw new UsageError('--principal: expected a name')
  return principal
}

export const serverIn = ([server]: readonly string[], command: string): string => {
  if (server === undefined || server === '')
    throw new UsageError(`expected the name of a server: dragoman ${command} SERVER`)
  return server
}

/** The login as the daemon knows it; a server that needs none, or does not exist, is reported when a login begins. */
export const findLogin = async (daemon: Daemon, { server, principal }: LoginSubject): Promise<LoginStatus> => {
  const response = await requestDaemon(daemon, `/admin/logins?principal=${encodeURIComponent(principal)}`)
  const logins = (await response.json()) as (LoginStatus & { server: string })[]
  return logins.find(login => login.server === server) ?? { kind: 'unneeded' }
}
