import type { AuthorizationServer } from '../../protocol/authorization-server.ts'
import type { BrowserRequest, BrowserResponse, SignIn } from '../../protocol/sign-in.ts'
import type { Grants } from './grants.ts'
import type { Sealer } from './sealer.ts'
import type { SignedIn, Visitors } from './visitors.ts'

interface ConnectedClientsOptions {
  readonly grants: Pick<Grants, 'list' | 'end'>
  readonly visitors: Visitors
  readonly signIn: Pick<SignIn, 'ask'>
  readonly sealer: Sealer
}

/** The button that disconnects a client. */
interface DisconnectHandle {
  readonly browser: string
  readonly principal: string
  readonly grant: string
}

const PATH = '/oauth/clients'
const HANDLE_MS = 60 * 60_000

/** The page on which people see the clients that they have allowed to act for them, and disconnect them. */
export const createConnectedClients = (
  options: ConnectedClientsOptions,
): Pick<AuthorizationServer, 'connectedClients' | 'disconnect'> => {
  const { grants, visitors, signIn, sealer } = options

  const ask = ({ cookies }: BrowserRequest): BrowserResponse =>
    signIn.ask({ cookies }, PATH, 'Sign in to see the clients that you have connected.')

  const show = async ({ browser, principal, name }: SignedIn): Promise<BrowserResponse> => {
    const handleFor = (grant: string): string =>
      sealer.seal('disconnect', { browser, principal, grant } satisfies DisconnectHandle, HANDLE_MS)
    const clients = (await grants.list(principal)).map(({ id, ...grant }) => ({ ...grant, handle: handleFor(id) }))
    const signOutHandle = sealer.seal('sign-in', { browser, returnTo: PATH }, HANDLE_MS)
    return { kind: 'clients', page: { visitor: name, clients, signOutHandle } }
  }

  return {
    connectedClients: async request => {
      const visitor = await visitors.signedIn(request.cookies)
      return visitor ? show(visitor) : ask(request)
    },

    disconnect: async request => {
      const handle = sealer.open<DisconnectHandle>('disconnect', request.params.get('handle'))
      const visitor = await visitors.signedIn(request.cookies)
      if (!visitor) return ask(request)
      if (handle && visitor.browser === handle.browser && visitor.principal === handle.principal)
        await grants.end(handle.grant, 'the visitor disconnected the client')
      return { kind: 'redirect', to: PATH }
    },
  }
}
