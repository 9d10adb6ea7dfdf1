import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { gatewayUrl, messageOf } from '../../../api.ts'
import { stringifyExact } from '../../../exact-json.ts'
import { withCallMeta } from '../../../mcp/client-settings.ts'
import type { McpClient } from '../../../mcp/mcp-client.ts'
import { isObject, type JsonObject } from '../../../mcp/messages.ts'
import { Button } from '../../../parts/button.tsx'
import { Callout } from '../../../parts/callout.tsx'
import { JsonTree } from '../../../parts/json-tree.tsx'
import { session } from '../../../session.ts'
import { isDark } from '../../../theme.ts'
import { clientSettings, connection } from '../connection.ts'
import { type AppCall, type AppRequest, appHtmlOf, appRefusal, appResult, stepFor } from './app-messages.ts'

export interface AppViewProps {
  readonly uri: string
  readonly args: unknown
  readonly result: JsonObject
}

const FIRST_HEIGHT = 240
const MOST_WAITING = 10 // requests of an app at once

/** What can be sent by `postMessage`: numbers with all their digits become plain ones. */
const plain = (value: JsonObject): JsonObject => JSON.parse(stringifyExact(value)) as JsonObject

/** The app of a tool, shown on demand: its scripts run in a frame that has no access to the console. */
export const AppView = ({ uri, args, result }: AppViewProps) => {
  const [html, setHtml] = useState<string | undefined>()
  const [error, setError] = useState<string | undefined>()
  const [isBusy, setBusy] = useState(false)
  const show = async (): Promise<void> => {
    const client = connection.peek()?.client
    if (!client) return
    setBusy(true)
    setError(undefined)
    try {
      const found = appHtmlOf(
        (await client.request('resources/read', withCallMeta({ uri }, clientSettings.peek()))).result,
      )
      if (found === undefined) throw new Error(`${uri} is no HTML, or it is larger than 5 MiB`)
      setHtml(found)
    } catch (failure) {
      setError(messageOf(failure))
    }
    setBusy(false)
  }
  return (
    <section class="app-view" aria-label="App">
      <div class="block-head">
        <h3>App</h3>
        <code class="truncate">{uri}</code>
        <Button isBusy={isBusy} onClick={() => (html === undefined ? void show() : setHtml(undefined))}>
          {html === undefined ? 'Show the app' : 'Close the app'}
        </Button>
      </div>
      {error !== undefined && <Callout kind="error">{error}.</Callout>}
      {html !== undefined && <AppFrame html={html} args={args} result={result} />}
    </section>
  )
}

interface AppFrameProps extends Omit<AppViewProps, 'uri'> {
  readonly html: string
}

const AppFrame = ({ html, args, result }: AppFrameProps) => {
  const frame = useRef<HTMLIFrameElement>(null)
  const [height, setHeight] = useState(FIRST_HEIGHT)
  const waiting = useSignal<readonly AppRequest[]>([])
  const send = (message: JsonObject): void => frame.current?.contentWindow?.postMessage(plain(message), '*')

  // Before the frame is loaded: it says that it is ready, and once more if the browser loads it again.
  useLayoutEffect(() => {
    const call: AppCall = {
      ...{ version: session.peek()?.version ?? '0', theme: isDark() ? 'dark' : 'light' },
      ...{ args, result },
    }
    const take = ({ source, data }: MessageEvent<unknown>): void => {
      if (!source || source !== frame.current?.contentWindow) return
      if (isObject(data) && data.frame === 'ready') return frame.current.contentWindow.postMessage({ html }, '*')
      const step = stepFor(data, call)
      if (step.kind === 'send') for (const message of step.messages) send(message)
      else if (step.kind === 'resize') setHeight(step.height)
      else if (step.kind === 'ask') {
        if (waiting.peek().length < MOST_WAITING) waiting.value = [...waiting.peek(), step.request]
        else send(appRefusal(step.request, `${MOST_WAITING} requests of this app wait for the user`))
      }
    }
    addEventListener('message', take)
    return () => removeEventListener('message', take)
  }, [html, args, result])

  const settle = (request: AppRequest, client: McpClient | undefined): void => {
    waiting.value = waiting.peek().filter(each => each !== request)
    if (!client) return send(appRefusal(request, 'The user refused'))
    client.request(request.method, withCallMeta(request.params, clientSettings.peek())).then(
      ({ result: answer }) => send(appResult(request, answer)),
      (error: unknown) => send(appRefusal(request, messageOf(error))),
    )
  }
  return (
    <>
      {waiting.value.map(request => (
        <div key={request.id} class="question" role="group" aria-label="The app asks">
          <p>
            The app wants to send <code>{request.method}</code> to its server:
          </p>
          <JsonTree value={request.params} openDepth={2} />
          <div class="question-actions">
            <Button kind="primary" onClick={() => settle(request, connection.peek()?.client)}>
              Allow once
            </Button>
            <Button onClick={() => settle(request, undefined)}>Refuse</Button>
          </div>
        </div>
      ))}
      <iframe
        ref={frame}
        class="app-frame"
        title="The app of the server; not a part of the console"
        sandbox="allow-scripts"
        src={gatewayUrl('console/app')}
        style={{ height: `${height}px` }}
      />
    </>
  )
}
