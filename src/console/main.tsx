// The entry of the page: who the user is, then what the address asks for.
import { render } from 'preact'
import { messageOf } from './api.ts'
import { App } from './app.tsx'
import { startFeed } from './events.ts'
import { listenForKeys } from './keys.ts'
import { toast } from './parts/toast.tsx'
import { followAddress, hrefTo, navigate } from './router.ts'
import { keepSession, loadSession, signIn } from './session.ts'
import { startTheme } from './theme.ts'

const ONE_TIME_LINK = /^#\/overview\?(?:.*&)?code=([^&]+)/

/** The code of a one-time link leaves the address at once: it must not stay in the history. */
const takeCode = (): string | undefined => {
  const code = ONE_TIME_LINK.exec(location.hash)?.[1]
  if (code !== undefined) navigate(hrefTo('overview'), { replace: true })
  return code === undefined ? undefined : decodeURIComponent(code)
}

const start = async (): Promise<void> => {
  const code = takeCode()
  try {
    await loadSession()
    if (code !== undefined) await signIn({ code })
  } catch (error) {
    toast(messageOf(error), { kind: 'error' })
  }
}

startTheme()
followAddress()
listenForKeys()
startFeed()
keepSession()
addEventListener('hashchange', () => {
  if (ONE_TIME_LINK.test(location.hash)) void start()
})
const root = document.getElementById('app')
if (root) render(<App retry={() => void start()} />, root)
void start()
