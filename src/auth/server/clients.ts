import type { AuthServerConfig } from '../../config/snapshot.ts'
import { type ClientDocuments, isDocumentUrl } from './client-documents.ts'
import type { OAuthClient } from './client-metadata.ts'
import type { RegisteredClients } from './registered-clients.ts'

interface ClientsOptions {
  readonly config: Pick<AuthServerConfig, 'registration' | 'clients'>
  readonly registered: Pick<RegisteredClients, 'find' | 'markUsed'>
  readonly documents: Pick<ClientDocuments, 'find'>
}

/** Finds clients by their id: those of the configuration, those that published a document, and those that registered. */
export const createClients = ({ config, registered, documents }: ClientsOptions) => {
  const isOpen = config.registration === 'open'

  const findListed = (id: string): OAuthClient | undefined => {
    const listed = config.clients.get(id)
    return listed && { id, source: 'listed', name: listed.name, redirectUris: listed.redirectUris }
  }

  return {
    /** The client that leads a browser here; a text says why it is unknown. */
    find: async (id: string, address: string | undefined): Promise<OAuthClient | string> => {
      const listed = findListed(id)
      if (listed) return listed
      if (!isOpen) return 'The person who runs this gateway has not listed this client.'
      if (!isDocumentUrl(id))
        return (
          (await registered.find(id)) ??
          'This client is not registered here, or its registration was removed. Disconnect it from this gateway, ' +
            'and connect it again: it registers again then.'
        )
      const found = await documents.find(id, address)
      return 'client' in found
        ? found.client
        : `What this client says about itself could not be read: ${found.problem}.`
    },

    /** Whether a client may use its tokens. Its document is not fetched: the grant belongs to its URL. */
    isKnown: async (id: string): Promise<boolean> => {
      if (findListed(id)) return true
      return isOpen && (isDocumentUrl(id) || (await registered.find(id)) !== undefined)
    },

    markUsed: async ({ id, source }: OAuthClient): Promise<void> => {
      if (source === 'registered') await registered.markUsed(id)
    },

    /** A client has got new tokens: it is not forgotten before they end. */
    keep: async (id: string): Promise<void> => {
      if (!findListed(id) && !isDocumentUrl(id)) await registered.markUsed(id)
    },
  }
}

export type Clients = ReturnType<typeof createClients>
