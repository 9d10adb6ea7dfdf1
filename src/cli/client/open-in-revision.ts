import type { ServerConfig } from '../../config/snapshot.ts'
import { NEVER } from '../../protocol/cancellation.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { isModern, type Revision } from '../../protocol/revisions.ts'
import { sendRequest } from '../../protocol/send-request.ts'
import type { ClientPeer } from '../command.ts'
import { ClientError, EXIT, isOwnAnswer } from './exit-codes.ts'

interface RevisionWish {
  readonly config: ServerConfig // in the era of the revision
  readonly caller: Caller // in the revision
  readonly label: string // of the server, for messages
  /** Opens the server; `revision` undefined: the newest one that it speaks. */
  open(config: ServerConfig, revision: Revision | undefined): Promise<ClientPeer>
}

/**
 * Opens a server in the revision of --revision. A server of another era rejects the first request, with an error that says
 * nothing about revisions: then it is opened again without a wish, and a ClientError names the revision that it speaks.
 */
export const openInRevision = async ({ config, caller, label, open }: RevisionWish): Promise<ClientPeer> => {
  const { revision } = caller
  if (config.kind !== 'remote' && config.kind !== 'process') return open(config, revision)
  const spoken = await tryRevision(() => open(config, revision), caller)
  if (typeof spoken === 'object') return spoken
  const newest = spoken ?? (await newestRevision(() => open({ ...config, era: 'auto' }, undefined)))
  const hint = `Leave out --revision, or choose another; "dragoman doctor" tries them all.`
  throw new ClientError(`${label} does not speak ${revision}: it speaks ${newest}\n${hint}`, EXIT.protocol)
}

/** The open server; the revision that it has chosen instead; or undefined if it has rejected this one. */
const tryRevision = async (
  open: () => Promise<ClientPeer>,
  caller: Caller,
): Promise<ClientPeer | Revision | undefined> => {
  let peer: ClientPeer | undefined
  try {
    peer = await open()
    if (peer.revision === caller.revision) {
      // A modern server has no handshake that would show its revision.
      if (isModern(peer.revision)) await sendRequest(peer.dispatch, caller, 'server/discover', undefined, NEVER)
      return peer
    }
    await peer.close()
    return peer.revision
  } catch (error) {
    await peer?.close().catch(() => {})
    if (error instanceof RpcFailure && isOwnAnswer(error.error)) return undefined
    throw error
  }
}

const newestRevision = async (open: () => Promise<ClientPeer>): Promise<Revision> => {
  const peer = await open()
  await peer.close().catch(() => {})
  return peer.revision
}
