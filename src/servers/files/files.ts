import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Peer } from '../../protocol/exchange.ts'
import { type DefinedServer, defineServer } from '../define/define.ts'
import { messageOf } from '../define/failures.ts'
import { createFileList, fileTemplate } from './resources.ts'
import { createRoot, type RootOptions } from './root.ts'
import { searchForPattern } from './search.ts'
import { createFileSubscriptions } from './subscriptions.ts'
import { findFile, listDir, readFile } from './tools.ts'

interface FilesOptions extends RootOptions {
  readonly root: string
  readonly version: string
}

const INSTRUCTIONS =
  'Start with list_dir on "." to see the project, find files by name with find_file and by content with ' +
  'search_for_pattern, then read the parts you need with read_file. All paths are relative to the project root.'

/** A server that shows one folder of the machine, read-only. */
export const files = ({ root: folder, version, ...options }: FilesOptions): DefinedServer => {
  const root = createRoot(folder, options)
  const fileList = createFileList(root)
  const server = defineServer({
    name: 'files',
    title: 'Project files',
    version,
    description: 'The files of one project, read-only',
    instructions: INSTRUCTIONS,
    tools: [listDir(root), readFile(root), findFile(root), searchForPattern(root)],
    resources: fileList.current,
    templates: [fileTemplate(root)],
  })
  const subscriptions = createFileSubscriptions(root, server.changed)

  const withFiles = (peer: Peer): Peer => ({
    ...peer,
    dispatch: exchange => {
      if (exchange.method === 'subscriptions/listen') return subscriptions.listen(exchange, peer.dispatch)
      if (exchange.method !== 'resources/list') return peer.dispatch(exchange)
      const proceed = (): void => peer.dispatch(exchange)
      fileList.refresh().then(proceed, proceed) // if the refresh fails, the previous list is served
    },
  })

  return {
    changed: server.changed,
    open: async caller => {
      await root.check().catch(error => {
        throw new RpcFailure(rpcError('internal', messageOf(error)))
      })
      return withFiles(await server.open(caller))
    },
    close: () => {
      subscriptions.close()
      return server.close()
    },
  }
}
