import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { LIST_CHANGES } from '../../protocol/notifications.ts'
import type { Changes } from '../define/subscriptions.ts'
import { fileUri, pathOf } from './paths.ts'
import type { Root } from './root.ts'
import { addOne, createWatcher, removeOne } from './watch.ts'

/** Watches the files that subscribers ask for and announces their changes. */
export interface FileSubscriptions {
  /** Watches what a `subscriptions/listen` request asks for, then dispatches it. */
  listen(exchange: Exchange, dispatch: Dispatch): void
  close(): void
}

export const createFileSubscriptions = (root: Root, changes: Changes): FileSubscriptions => {
  const otherSpellings = new Map<string, number>() // URIs that clients spell in another way than fileUri, with their number

  const watcher = createWatcher(root, {
    onChange: path => {
      changes.updated(fileUri(path))
      for (const uri of otherSpellings.keys()) if (isAbout(uri, path)) changes.updated(uri)
    },
    onRename: changes.resources,
  })

  const watchUri = (uri: string): (() => void) => {
    const path = pathOf(uri)
    if (path === undefined) return () => {}
    const release = watcher.hold(path)
    if (uri === fileUri(path)) return release
    addOne(otherSpellings, uri)
    return () => {
      release()
      removeOne(otherSpellings, uri)
    }
  }

  const listen = (exchange: Exchange, dispatch: Dispatch): void => {
    if (exchange.signal.reason) return
    const watched = requestedUris(exchange).map(watchUri)
    const release = (): void => {
      for (const end of watched.splice(0)) end()
    }
    const stopListening = exchange.signal.onAbort(release)
    const sink: Exchange['sink'] = frame => {
      if (frame.kind === 'result' || frame.kind === 'failure') {
        stopListening()
        release()
      }
      return exchange.sink(frame)
    }
    // Acknowledged only once the files are watched: from then on the client misses nothing.
    const start = (): void => dispatch({ ...exchange, sink })
    watcher.settled().then(start, start)
  }

  return { listen, close: watcher.close }
}

/** The list of all files can change with any folder of the project. */
const requestedUris = ({ params }: Exchange): string[] => {
  const wanted = params.get('notifications')
  const uris = (wanted?.get('resourceSubscriptions')?.elements() ?? []).flatMap(uri => uri.asString() ?? [])
  return wanted?.get(LIST_CHANGES.resources.flag)?.asBoolean() ? ['file:///', ...uris] : uris
}

const isAbout = (uri: string, path: string): boolean => {
  const watched = pathOf(uri)?.replace(/\/$/, '')
  return watched !== undefined && (path === watched || path.startsWith(`${watched}/`))
}
