import type { Revision } from '../../src/protocol/revisions.ts'
import { openChannel } from '../support/channel.ts'
import { type MatrixClient, type Wire, written } from './client.ts'
import { messageClient } from './message-client.ts'

/** A legacy revision over HTTP+SSE: the channel is the session. */
export const channelClient = async (
  url: string,
  revision: Revision,
  capabilities: object,
  workspace = 'default',
): Promise<MatrixClient> => {
  const channel = await openChannel(`${url}/${workspace}/sse`)
  const line = {
    send: async (message: object) => void (await channel.post(written(message))),
    listen: (take: (message: Wire, text: string) => void) => {
      void (async () => {
        for (let event = await channel.next(); event; event = await channel.next())
          if (event.event === 'message') take(JSON.parse(event.data) as Wire, event.data)
      })()
    },
    close: () => channel.close(),
  }
  return messageClient(line, revision, capabilities)
}
