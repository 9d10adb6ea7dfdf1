import { columns, type Flags, flagHelp } from './usage.ts'

/** What help says of one action of a command. */
interface Described {
  readonly usage: string
  readonly summary: string
  readonly flags: Flags
}

/** The help of a command: its actions, and every flag with the actions it belongs to. */
export const commandHelp = (
  command: string,
  about: string,
  actions: Readonly<Record<string, Described>>,
  common: Flags,
): string => `Usage: dragoman ${command} <action> [flags]

${about}

${columns(Object.values(actions).map(({ usage, summary }) => [usage, summary]))}

${flagHelp({ ...belonging(actions), ...common })}

dragoman ${command} <action> --help shows what belongs to that action.
`

/** The help of one action. */
export const actionHelp = (command: string, { usage, summary, flags }: Described, common: Flags): string =>
  `Usage: dragoman ${command} ${usage} [flags]

${summary.charAt(0).toUpperCase()}${summary.slice(1)}.

${flagHelp({ ...flags, ...common })}
`

const belonging = (actions: Readonly<Record<string, Described>>): Flags => {
  const owners = new Map<string, string[]>()
  for (const [action, { flags }] of Object.entries(actions))
    for (const flag of Object.keys(flags)) owners.set(flag, [...(owners.get(flag) ?? []), action])
  return Object.fromEntries(
    Object.values(actions).flatMap(({ flags }) =>
      Object.entries(flags).map(([name, flag]) => [
        name,
        { ...flag, help: `${owners.get(name)?.join(', ')}: ${flag.help}` },
      ]),
    ),
  )
}
