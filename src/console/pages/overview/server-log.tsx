import { useEffect, useRef, useState } from 'preact/hooks'
import { messageOf, send } from '../../api.ts'
import { onFeed } from '../../events.ts'
import { formatAbsolute, plural } from '../../parts/format.ts'
import { isOwner } from '../../session.ts'
import { appendLog, type LogEntry, parseLog, readLogLine } from './log-lines.ts'

const FOLLOWED = 60 // lines that are rendered while the list follows
const RENDER_MS = 250 // lines of this time are shown together: thousands a second must not hold the page up

interface ServerLogState {
  readonly lines: readonly LogEntry[]
  readonly skipped: number // that the gateway did not send, because they came too quickly
  readonly error?: string | undefined
}

const NOTHING: ServerLogState = { lines: [], skipped: 0 }

/** The lines of one server: those the gateway has kept, then each as it is written. */
export const useServerLog = (server: string): ServerLogState => {
  const [state, setState] = useState<ServerLogState>(NOTHING)
  const mayRead = isOwner.value
  useEffect(() => {
    setState(NOTHING)
    if (!mayRead) return
    const abort = new AbortController()
    let waiting: LogEntry[] = []
    let dropped = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const show = (): void => {
      timer = undefined
      const [more, count] = [waiting, dropped]
      waiting = []
      dropped = 0
      setState(before => ({ lines: appendLog(before.lines, more), skipped: before.skipped + count }))
    }
    const schedule = (): void => {
      timer ??= setTimeout(show, RENDER_MS)
    }
    const leaveLog = onFeed('log', data => {
      const line = readLogLine((data as { readonly line?: unknown }).line, server)
      if (!line) return
      waiting.push(line)
      schedule()
    })
    const leaveDropped = onFeed('dropped', data => {
      const { kind, count } = data as { readonly kind: string; readonly count: number }
      if (kind !== 'log') return
      dropped += count
      schedule()
    })
    send('GET', `admin/logs?server=${encodeURIComponent(server)}`, undefined, { signal: abort.signal })
      .then(async response => parseLog(await response.text(), server))
      .then(
        lines => setState(before => ({ ...before, lines: appendLog(lines, before.lines) })),
        (error: unknown) => abort.signal.aborted || setState(before => ({ ...before, error: messageOf(error) })),
      )
    return () => {
      abort.abort()
      clearTimeout(timer)
      leaveLog()
      leaveDropped()
    }
  }, [server, mayRead])
  return state
}

const LEVELS: Readonly<Record<string, string>> = { error: 'tone-error', warn: 'tone-warn', stderr: 'quiet' }

const timeText = (time: number): string => formatAbsolute(time).slice(-8)

/** The lines, newest last. The list follows them; scrolled up, it shows more and holds still. */
export const ServerLog = ({ lines, skipped, error }: ServerLogState) => {
  const box = useRef<HTMLDivElement>(null)
  const [held, setHeld] = useState<readonly LogEntry[] | undefined>() // what the user reads, scrolled up
  const shown = held ?? lines.slice(-FOLLOWED)
  useEffect(() => {
    if (box.current && !held) box.current.scrollTop = box.current.scrollHeight
  }, [lines, held])
  if (!isOwner.value) return <p class="quiet">Lines of the log are shown to the owner of the gateway.</p>
  if (error !== undefined) return <p class="tone-error">{error}</p>
  if (lines.length === 0) return <p class="quiet">No lines yet. What the server prints to stderr appears here.</p>
  return (
    <>
      {held && (
        <p class="quiet">
          New lines wait.{' '}
          <button type="button" class="link" onClick={() => setHeld(undefined)}>
            Follow them
          </button>
        </p>
      )}
      {skipped > 0 && <p class="quiet">{plural(skipped, 'line')} came too quickly to be shown.</p>}
      <div
        ref={box}
        class="server-log mono"
        role="log"
        aria-label="Log"
        aria-live="off"
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          const isAtEnd = scrollTop + clientHeight >= scrollHeight - 4
          if (isAtEnd === (held !== undefined)) setHeld(isAtEnd ? undefined : lines)
        }}
      >
        {shown.map(({ id, time, level, text }) => (
          <div key={id} class="log-line">
            <time dateTime={new Date(time).toISOString()} title={formatAbsolute(time)}>
              {timeText(time)}
            </time>
            <span class={LEVELS[level]}>{level}</span>
            <span class="log-text">{text}</span>
          </div>
        ))}
      </div>
    </>
  )
}
