import type { Daemon } from '../config/daemon-file.ts'
import type { LoginLink } from '../protocol/oauth.ts'
import { openInBrowser } from './client/programs.ts'
import { processTerminal, safeLine, type Terminal } from './client/terminal.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon, waitUntil } from './daemon-client.ts'
import { findLogin, type LoginSubject, PRINCIPAL_FLAG, principalIn, serverIn } from './login-subject.ts'
import { DATA_FLAG, type Flags, flagHelp, printError, readLine } from './usage.ts'

const FLAGS: Flags = {
  ...PRINCIPAL_FLAG,
  'no-browser': { help: 'print the link, and open no browser' },
  paste: { help: 'where the browser cannot reach the gateway: paste the address at which it ends' },
  ...DATA_FLAG,
}

const HELP = `Usage: dragoman login SERVER [flags]

Logs in to a server that wants OAuth, at the running daemon: opens a browser, and waits until the login is complete. Clients
that show links can do the same; their users need no command.

${flagHelp(FLAGS)}
`

/** Logs in at a server. */
export const run: Run = async (args, { terminal = processTerminal() }) => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) return write(terminal, HELP)
  const subject = { server: serverIn(words, 'login'), principal: principalIn(flags) }
  const daemon = await daemonOf(flags)
  const before = await findLogin(daemon, subject)
  const link = (await (await requestDaemon(daemon, '/admin/logins/begin', subject)).json()) as LoginLink
  if (flags.paste) return paste(daemon, subject, link, terminal)
  const isOpened = !flags['no-browser'] && (await openInBrowser(link.url, terminal.env))
  write(terminal, `${isOpened ? 'Your browser opens' : 'Open'} ${link.url}\n`)
  const isDone = await waitUntil(link.expires - Date.now(), async () => {
    const login = await findLogin(daemon, subject)
    return login.kind === 'present' && (before.kind !== 'present' || login.since !== before.since)
  })
  if (isDone) return write(terminal, done(subject))
  return printError(`no login at server "${subject.server}" within the ten minutes that the link is valid; try again`)
}

/** The browser ends at an address that it cannot open: its query is all that is needed. */
const paste = async (daemon: Daemon, subject: LoginSubject, { id }: LoginLink, terminal: Terminal): Promise<number> => {
  const { principal } = subject
  const { url } = (await (await requestDaemon(daemon, '/admin/logins/open', { id, principal })).json()) as LoginLink
  write(terminal, `Open this address in any browser and log in:\n\n  ${url}\n\nPaste the address at which it ends:\n`)
  const address = safeLine(await firstLine(terminal))
  if (address === '') return printError('no address was pasted; nothing has changed', 2)
  await requestDaemon(daemon, '/admin/logins/finish', { address, principal })
  return write(terminal, done(subject))
}

const firstLine = async ({ input }: Terminal): Promise<string> => {
  let text = ''
  for await (const chunk of input) {
    text += String(chunk)
    if (text.includes('\n')) break
  }
  return text.split('\n', 1)[0] ?? ''
}

const done = ({ server, principal }: LoginSubject): string =>
  `Logged in to "${server}"${principal === 'local' ? '' : ` as ${principal}`}.\n`

const write = ({ output }: Terminal, text: string): number => {
  output.write(text)
  return 0
}
