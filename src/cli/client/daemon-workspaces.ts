import { get } from 'node:http'
import type { Daemon } from '../../config/daemon-file.ts'
import { nearest, quoteAll } from '../../config/problems.ts'
import { UsageError } from '../usage.ts'
import { ClientError, EXIT, STATE_WORDS } from './exit-codes.ts'

interface NamedWorkspace {
  readonly name: string
  readonly servers: readonly string[]
}

const TIMEOUT_MS = 10_000

/** The workspaces of the daemon with their servers; undefined if no daemon answers at its address. */
export const fetchWorkspaces = ({ origin, token }: Daemon): Promise<readonly NamedWorkspace[] | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
    const request = get(origin, { headers, timeout: TIMEOUT_MS, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(response.statusCode === 200 ? workspacesIn(text) : undefined))
    })
    request.on('timeout', () => {
      const text = `the daemon at ${origin} did not answer within ${TIMEOUT_MS / 1000} s (${STATE_WORDS.connecting})`
      reject(new ClientError(text, EXIT.unreachable))
      request.destroy()
    })
    request.on('error', () => resolve(undefined)) // a killed daemon leaves its announcement
  })

const workspacesIn = (text: string): readonly NamedWorkspace[] | undefined => {
  try {
    const { workspaces } = JSON.parse(text) as { workspaces?: readonly NamedWorkspace[] }
    return Array.isArray(workspaces) ? workspaces : undefined
  } catch {
    return undefined
  }
}

const DEFAULT_NAME = 'default'

/** The workspace of that name, or the default one; the only one there is, if there is no default. */
export const chooseWorkspace = (workspaces: readonly NamedWorkspace[], wanted: string | undefined): NamedWorkspace => {
  const name = wanted ?? DEFAULT_NAME
  const found = workspaces.find(workspace => workspace.name === name)
  const [only, ...others] = workspaces
  if (found) return found
  if (wanted === undefined && only && others.length === 0) return only
  const names = workspaces.map(workspace => workspace.name)
  const meant = nearest(name, names)
  const hint =
    meant === undefined ? `choose with --workspace: ${quoteAll(names)}` : `did you mean ${JSON.stringify(meant)}?`
  throw new UsageError(`there is no workspace ${JSON.stringify(name)}; ${hint}`)
}
