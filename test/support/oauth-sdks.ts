import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'

const REDIRECT = 'http://127.0.0.1:3334/callback'

/** What an SDK keeps of its login. */
export interface KeptLogin {
  client?: { readonly client_id: string }
  tokens?: { readonly access_token: string; readonly refresh_token?: string }
  verifier?: string
  visited?: URL
}

const providerFor = (kept: KeptLogin) => ({
  redirectUrl: REDIRECT,
  clientMetadata: { client_name: 'SDK', redirect_uris: [REDIRECT] },
  clientInformation: () => kept.client,
  saveClientInformation: (client: NonNullable<KeptLogin['client']>) => void Object.assign(kept, { client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens: NonNullable<KeptLogin['tokens']>) => void Object.assign(kept, { tokens }),
  saveCodeVerifier: (verifier: string) => void Object.assign(kept, { verifier }),
  codeVerifier: () => kept.verifier ?? '',
  redirectToAuthorization: (visited: URL) => void Object.assign(kept, { visited }),
})

/** Clients of both SDKs with their own OAuth; `finish` takes the parameters that the browser came back with. */
export const OAUTH_SDKS = {
  'SDK v1': (url: string, kept: KeptLogin) => {
    const client = new ClientV1({ name: 'v1', version: '1' })
    const transport = new TransportV1(new URL(url), { authProvider: providerFor(kept) as never })
    return {
      connect: () => client.connect(transport as Transport),
      finish: ({ code = '' }: Record<string, string>) => transport.finishAuth(code),
      tools: async () => (await client.listTools()).tools.length,
      call: (name: string) => client.callTool({ name, arguments: {} }),
      close: () => client.close(),
    }
  },
  'SDK v2': (url: string, kept: KeptLogin) => {
    const client = new ClientV2({ name: 'v2', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    const transport = new TransportV2(new URL(url), { authProvider: providerFor(kept) as never })
    return {
      connect: () => client.connect(transport),
      finish: (response: Record<string, string>) => transport.finishAuth(new URLSearchParams(response)),
      tools: async () => (await client.listTools()).tools.length,
      call: (name: string) => client.callTool({ name, arguments: {} }),
      close: () => client.close(),
    }
  },
}
