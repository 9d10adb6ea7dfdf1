import { findDaemon } from '../config/daemon-file.ts'
import type { JsonChange } from '../config/edit/json-members.ts'
import { type EditableConfig, fileToEdit, openConfig, previewChange, saveConfig } from '../config/edit/own-file.ts'
import { findConfig } from '../config/find-config.ts'
import { DATA_FLAG, dataDirectoryOf, type Flags, type FlagValues, print, textOf } from './usage.ts'

/** Flags of the commands that change the configuration file. */
export const EDIT_FLAGS: Flags = {
  config: {
    value: 'FILE',
    help: "the file to change (default: dragoman.json here, else the user's, which is created)",
  },
  'dry-run': { help: 'show what would change, change nothing' },
  ...DATA_FLAG,
}

/** Opens the configuration file that a command changes. */
export const openForEdit = async (flags: FlagValues): Promise<EditableConfig> =>
  openConfig(await fileToEdit(textOf(flags, 'config'), { env: process.env }))

/** Checks and writes changes, and says what was done; with --dry-run it only shows the result. */
export const applyChanges = async (
  config: EditableConfig,
  changes: readonly JsonChange[],
  flags: FlagValues,
  done: string,
): Promise<number> => {
  const { text, warnings } = previewChange(config, changes)
  if (flags['dry-run']) return print(`${done} ${config.file}: not done, because of --dry-run.\n`)
  const backup = await saveConfig(config, text)
  print(`${done} ${config.file}${backup === undefined ? '' : ` (backup: ${backup})`}.\n`)
  const names = changes.map(({ path }) => path.at(-1) ?? '')
  for (const warning of warnings.filter(warning => names.some(name => warning.includes(name))))
    print(`warning: ${warning}\n`)
  return print(await nextStep(config.file, flags))
}

/** How the change takes effect. */
const nextStep = async (file: string, flags: FlagValues): Promise<string> => {
  const daemon = await findDaemon(dataDirectoryOf(flags))
  if (daemon?.config === file) return 'The running daemon reads it now.\n'
  const found = await findConfig({ env: process.env })
  if (found === file) return ''
  return `In this directory "dragoman serve" uses ${found ?? 'no file'}; give --config ${file}\n`
}
