import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { api, messageOf } from '../../api.ts'

/** Counts the changes that this page has made: what is shown is read again. */
const changes = signal(0)

export const memoryChanged = (): void => {
  changes.value++
}

/** What is loaded. `data` stays while it is read again, so that nothing moves. */
export interface Loaded<T> {
  readonly data?: T | undefined
  readonly error?: string | undefined
  readonly isLoading: boolean
}

/** The old value where the new one is equal: nothing is computed or arranged again. */
const sameOr = <T>(before: T | undefined, next: T): T =>
  before !== undefined && JSON.stringify(before) === JSON.stringify(next) ? before : next

/** Reads a path of the admin API, and again when it or the memory changes; undefined: nothing is read. */
export const useMemoryData = <T>(path: string | undefined, delayMs = 0): Loaded<T> => {
  const [state, setState] = useState<Loaded<T> & { readonly path?: string }>({ isLoading: true })
  const version = changes.value
  useEffect(() => {
    if (path === undefined) return setState({ isLoading: false })
    const abort = new AbortController()
    setState(before => ({ ...before, isLoading: true }))
    const read = (): void =>
      void api.get<T>(path, { signal: abort.signal }).then(
        data => setState(before => ({ data: sameOr(before.data, data), isLoading: false, path })),
        (error: unknown) => {
          if (!abort.signal.aborted) setState({ error: messageOf(error), isLoading: false, path })
        },
      )
    const timer = setTimeout(read, delayMs)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [path, version, delayMs])
  return state
}

/** Runs a change of the memory; returns the state of its button, and what was refused. */
export const useMemoryAction = () => {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<string | undefined>()
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await work()
      memoryChanged()
    } catch (thrown) {
      setError(messageOf(thrown))
    } finally {
      setBusy(false)
    }
  }
  return { isBusy, error, run }
}
