import { openInBrowser } from './client/programs.ts'
import { processTerminal } from './client/terminal.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { DATA_FLAG, type Flags, flagHelp, readLine } from './usage.ts'

const FLAGS: Flags = {
  'no-open': { help: 'print the link, and open no browser' },
  print: { help: 'print the link alone, for scripts; opens no browser' },
  ...DATA_FLAG,
}

const HELP = `Usage: dragoman console [flags]

Opens the console of the running daemon in your browser: servers, tools, recorded calls, memory, configuration. The link
signs in as the owner. It works once, within ten minutes.

${flagHelp(FLAGS)}
`

/** Prints a one-time link to the console, and opens it where there is a desktop. */
export const run: Run = async (args, { terminal = processTerminal() }) => {
  const { flags } = readLine(args, FLAGS, 0)
  const write = (text: string): number => {
    terminal.output.write(text)
    return 0
  }
  if (flags.help) return write(HELP)
  const daemon = await daemonOf(flags)
  const { url } = (await (await requestDaemon(daemon, '/admin/session/link', {})).json()) as { url: string }
  if (flags.print) return write(`${url}\n`)
  const isOpened = !flags['no-open'] && hasDesktop(terminal.env) && (await openInBrowser(url, terminal.env))
  return write(
    `${isOpened ? 'Your browser opens' : 'Open'} ${url}\nThe link signs you in as the owner, once, within ten minutes.\n`,
  )
}

/** On Linux a program that opens browsers may be installed where none can be shown. */
const hasDesktop = ({ BROWSER, DISPLAY, WAYLAND_DISPLAY }: NodeJS.ProcessEnv): boolean =>
  process.platform === 'darwin' || process.platform === 'win32' || Boolean(BROWSER || DISPLAY || WAYLAND_DISPLAY)
