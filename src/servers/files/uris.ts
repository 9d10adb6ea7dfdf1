/** The resource of a path; the root of the project is the root of these URIs, wherever on the machine it lies. */
export const fileUri = (path: string): string => `file:///${path.split('/').map(encodeURIComponent).join('/')}`

/** The path of a resource, escapes decoded; undefined if the URI is not one of these. */
export const pathOf = (uri: string): string | undefined => {
  if (!uri.startsWith('file:///')) return undefined
  try {
    return decodeURIComponent(uri.slice('file:///'.length))
  } catch {
    return undefined
  }
}
