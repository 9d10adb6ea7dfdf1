import type { ForgottenLogin } from '../protocol/oauth.ts'
import { processTerminal } from './client/terminal.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { PRINCIPAL_FLAG, principalIn, serverIn } from './login-subject.ts'
import { DATA_FLAG, type Flags, flagHelp, readLine } from './usage.ts'

const FLAGS: Flags = { ...PRINCIPAL_FLAG, ...DATA_FLAG }

const HELP = `Usage: dragoman logout SERVER [flags]

Ends a login at a server: the running daemon revokes its tokens there, and forgets them.

${flagHelp(FLAGS)}
`

/** Ends a login at a server. */
export const run: Run = async (args, { terminal = processTerminal() }) => {
  const { flags, words } = readLine(args, FLAGS, 1)
  const { output } = terminal
  if (flags.help) {
    output.write(HELP)
    return 0
  }
  const subject = { server: serverIn(words, 'logout'), principal: principalIn(flags) }
  const response = await requestDaemon(await daemonOf(flags), '/admin/logins/end', subject)
  output.write(`${describe(subject.server, (await response.json()) as ForgottenLogin)}\n`)
  return 0
}

const describe = (server: string, { wasPresent, isRevoked }: ForgottenLogin): string => {
  if (!wasPresent) return `There was no login at "${server}".`
  if (isRevoked) return `Logged out of "${server}". Its tokens are revoked.`
  return `Logged out of "${server}". Its authorization server did not confirm that the tokens are revoked; they are forgotten here.`
}
