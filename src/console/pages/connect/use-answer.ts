import { useCallback, useEffect, useState } from 'preact/hooks'
import { api, messageOf } from '../../api.ts'
import { type FeedKind, onFeed } from '../../events.ts'

/** An answer of the admin API while it is shown. The last value stays while it is read again. */
export interface LoadedAnswer<T> {
  readonly value: T | undefined
  readonly error: string | undefined
  readonly reload: () => void
}

interface AnswerState<T> {
  readonly path?: string
  readonly value?: T
  readonly error?: string
}

/** Reads a path, again when an event of that kind tells of a change. `undefined`: nothing is read. */
export const useAnswer = <T>(path: string | undefined, feed?: FeedKind): LoadedAnswer<T> => {
  const [state, setState] = useState<AnswerState<T>>({})
  const [round, setRound] = useState(0)
  const reload = useCallback(() => setRound(before => before + 1), [])

  useEffect(() => {
    if (path === undefined) return
    const abort = new AbortController()
    api.get<T>(path, { signal: abort.signal }).then(
      value => setState({ path, value }),
      (error: unknown) => {
        if (!abort.signal.aborted) setState(before => ({ ...before, path, error: messageOf(error) }))
      },
    )
    return () => abort.abort()
  }, [path, round])

  useEffect(() => (feed === undefined ? undefined : onFeed(feed, reload)), [feed, reload])

  const isCurrent = path !== undefined && state.path === path
  return { value: path === undefined ? undefined : state.value, error: isCurrent ? state.error : undefined, reload }
}
