/** What a path of the REST door is about. */
export type Place =
  | {
      readonly kind: 'tool'
      readonly workspace: string | undefined // undefined: the path names none
      readonly server: string | undefined
      readonly tool: string
    }
  | { readonly kind: 'description'; readonly workspace: string | undefined } // undefined: of every workspace

const ROOT = '/actions/'
const DESCRIPTION = 'openapi.json'
const MOST_SEGMENTS = 3

/** Takes a path apart; a slash within a name is written %2F. Undefined if it has no such form. */
export const placeOf = (path: string): Place | undefined => {
  const segments = path.slice(ROOT.length).split('/').map(decoded)
  const [first, second, third] = segments
  if (!first || segments.length > MOST_SEGMENTS || segments.some(segment => !segment)) return undefined
  if (segments.length === 1 && first === DESCRIPTION) return { kind: 'description', workspace: undefined }
  if (segments.length === 2 && second === DESCRIPTION) return { kind: 'description', workspace: first }
  if (third) return { kind: 'tool', workspace: first, server: second, tool: third }
  if (second) return { kind: 'tool', workspace: first, server: undefined, tool: second }
  return { kind: 'tool', workspace: undefined, server: undefined, tool: first }
}

/** The path of a tool, as the description shows it. */
export const pathOf = (workspace: string, tool: string): string =>
  `${ROOT}${encodeURIComponent(workspace)}/${encodeURIComponent(tool)}`

const decoded = (segment: string): string | undefined => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
