import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Peer } from '../../protocol/exchange.ts'
import { type DefinedServer, defineServer } from '../define/define.ts'
import { messageOf } from '../define/failures.ts'
import { findFile } from './find-file.ts'
import { listDir } from './list-dir.ts'
import { createNotices } from './notices.ts'
import { readFile } from './read-file.ts'
import { createShelf, fileTemplate } from './resources.ts'
import { createRoot, type RootOptions } from './root.ts'
import { searchForPattern } from './search.ts'

interface Options extends RootOptions {
  readonly root: string
  readonly version: string
}

const INSTRUCTIONS =
  'Start with list_dir on "." to see the project, find files by name with find_file and by content with ' +
  'search_for_pattern, then read the parts you need with read_file. All paths are relative to the project root.'

/** A server that shows one folder of the machine, read-only. */
export const files = ({ root: folder, version, ...options }: Options): DefinedServer => {
  const root = createRoot(folder, options)
  const shelf = createShelf(root)
  const server = defineServer({
    name: 'files',
    title: 'Project files',
    version,
    description: 'The files of one project, read-only',
    instructions: INSTRUCTIONS,
    tools: [listDir(root), readFile(root), findFile(root), searchForPattern(root)],
    resources: shelf.current,
    templates: [fileTemplate(root)],
  })
  const notices = createNotices(root, server.changed)

  const prepared = (peer: Peer): Peer => ({
    ...peer,
    dispatch: exchange => {
      if (exchange.method === 'subscriptions/listen') return notices.listen(exchange, peer.dispatch)
      if (exchange.method !== 'resources/list') return peer.dispatch(exchange)
      const go = (): void => peer.dispatch(exchange)
      shelf.refresh().then(go, go) // what cannot be looked at again is shown as it was
    },
  })

  return {
    changed: server.changed,
    open: async caller => {
      await root.check().catch(error => {
        throw new RpcFailure(rpcError('internal', messageOf(error)))
      })
      return prepared(await server.open(caller))
    },
    close: () => {
      notices.close()
      return server.close()
    },
  }
}
