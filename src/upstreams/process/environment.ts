/** What carries the mark by which everything a child starts is found again, wherever it has gone. */
export const TAG_VARIABLE = 'DRAGOMAN_CHILD'

type Variables = Readonly<Record<string, string | undefined>>

const POSIX: ReadonlySet<string> = new Set(
  'PATH HOME LANG TMPDIR USER LOGNAME SHELL TERM TZ'.split(' '), // and LC_*
)
const WINDOWS: ReadonlySet<string> = new Set(
  `PATH PATHEXT SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC TEMP TMP USERNAME USERPROFILE HOMEDRIVE HOMEPATH APPDATA
  LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROCESSOR_ARCHITECTURE`.split(/\s+/),
)

/** The environment of a child: what is configured for it, the least a program needs, and our mark; nothing else. */
export const environmentOf = (
  configured: Readonly<Record<string, string>>,
  mark: string,
  ours: Variables,
  platform: NodeJS.Platform,
): Record<string, string> => {
  const isWindows = platform === 'win32'
  const taken = new Set(Object.keys(configured).map(name => nameOf(name, isWindows)))
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(ours))
    if (value !== undefined && isSafe(name, value, isWindows) && !taken.has(nameOf(name, isWindows))) env[name] = value
  // A gateway that is somebody's child itself passes that mark on, so that its children are found from there too.
  const outer = ours[TAG_VARIABLE]
  return { ...env, ...configured, [TAG_VARIABLE]: outer ? `${outer},${mark}` : mark }
}

const nameOf = (name: string, isWindows: boolean): string => (isWindows ? name.toUpperCase() : name)

const isSafe = (name: string, value: string, isWindows: boolean): boolean => {
  if (value.startsWith('()')) return false // a function some shells export; it would be code
  return isWindows ? WINDOWS.has(name.toUpperCase()) : POSIX.has(name) || name.startsWith('LC_')
}
