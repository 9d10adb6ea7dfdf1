import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { Changes } from '../define/subscriptions.ts'
import type { Root } from './root.ts'
import { fileUri, pathOf } from './uris.ts'
import { createWatcher } from './watch.ts'

/** Tells listeners what happens to the files they asked about. */
export interface Notices {
  /** Watches for an exchange of `subscriptions/listen`, then lets it go on. */
  listen(exchange: Exchange, dispatch: Dispatch): void
  close(): void
}

export const createNotices = (root: Root, changes: Changes): Notices => {
  const spellings = new Map<string, number>() // URIs that a client wrote otherwise than we do, and how many did

  const watcher = createWatcher(root, {
    changed: path => {
      changes.updated(fileUri(path))
      for (const uri of spellings.keys()) if (isAbout(uri, path)) changes.updated(uri)
    },
    renamed: changes.resources,
  })

  const hold = (uri: string): (() => void) => {
    const path = pathOf(uri)
    if (path === undefined) return () => {}
    const release = watcher.hold(path)
    if (uri === fileUri(path)) return release
    spellings.set(uri, (spellings.get(uri) ?? 0) + 1)
    return () => {
      release()
      const left = (spellings.get(uri) ?? 1) - 1
      if (left > 0) spellings.set(uri, left)
      else spellings.delete(uri)
    }
  }

  const listen = (exchange: Exchange, dispatch: Dispatch): void => {
    if (exchange.signal.reason) return
    const held = wishesOf(exchange).map(hold)
    const release = (): void => {
      for (const end of held.splice(0)) end()
    }
    const forget = exchange.signal.onAbort(release)
    const sink: Exchange['sink'] = frame => {
      if (frame.kind === 'result' || frame.kind === 'failure') {
        forget()
        release()
      }
      return exchange.sink(frame)
    }
    // Whoever hears that it is subscribed misses nothing from then on.
    const go = (): void => dispatch({ ...exchange, sink })
    watcher.settled().then(go, go)
  }

  return { listen, close: watcher.close }
}

/** The list of all files changes with any folder of the project. */
const wishesOf = ({ params }: Exchange): string[] => {
  const wishes = params.get('notifications')
  const uris = wishes?.get('resourceSubscriptions')?.elements() ?? []
  const watched = uris.flatMap(uri => uri.asString() ?? [])
  return wishes?.get('resourcesListChanged')?.asBoolean() ? ['file:///', ...watched] : watched
}

const isAbout = (uri: string, path: string): boolean => {
  const watched = pathOf(uri)?.replace(/\/$/, '')
  return watched !== undefined && (path === watched || path.startsWith(`${watched}/`))
}
