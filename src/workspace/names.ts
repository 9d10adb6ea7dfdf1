const SEPARATORS = ['__', '/']

/** What follows the server in `<server>__<name>` or `<server>/<name>`; undefined for any other name. */
export const withoutServer = (server: string, name: string): string | undefined => {
  if (!name.startsWith(server)) return undefined
  const separator = SEPARATORS.find(between => name.startsWith(between, server.length))
  const bare = separator === undefined ? '' : name.slice(server.length + separator.length)
  return bare === '' ? undefined : bare
}
