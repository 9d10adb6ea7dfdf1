// Names for servers that come without one.

/** Programs that start another one, whose name says more. */
const LAUNCHERS: ReadonlySet<string> = new Set(
  'npx npm pnpm pnpx yarn bunx bun uvx uv pipx python python3 node deno docker podman run exec dlx x tsx sh bash cmd'.split(
    ' ',
  ),
)

/** A short name for a command: `npx -y @modelcontextprotocol/server-everything` is `everything`. */
export const nameOfCommand = (words: readonly string[]): string => {
  const candidates = words.filter(word => !word.startsWith('-')).map(plainName)
  return candidates.find(name => name !== '' && !LAUNCHERS.has(name)) ?? plainName(words[0] ?? '') ?? 'server'
}

const plainName = (word: string): string =>
  (word.split(/[\\/]/).at(-1) ?? '')
    .replace(/(?<=.)@.*$/, '')
    .replace(/\.\w+$/, '')
    .replace(/^(mcp-)?server-|^mcp-|-mcp(-server)?$|-server$/g, '')
    .replace(/[^\w.-]+/g, '-')

/** A short name for a URL: `https://mcp.example.com/mcp` is `example`. */
export const nameOfUrl = ({ hostname }: URL): string => {
  if (/^[\d.]+$|^\[/.test(hostname)) return 'server'
  const labels = hostname.split('.').filter(label => !['mcp', 'api', 'www'].includes(label))
  return labels.at(labels.length > 1 ? -2 : 0) || 'server'
}

/** The name, or the name with a number that no server has yet. */
export const freeName = (name: string, taken: (name: string) => boolean): string => {
  if (!taken(name)) return name
  let number = 2
  while (taken(`${name}-${number}`)) number++
  return `${name}-${number}`
}
