import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import { freePort } from '../../support/free-port.ts'
import { createBrowser } from '../../support/oauth/browser.ts'
import { MAIN, startDaemon } from './daemon.ts'

/** The gateway as an authorization server, with a client that the suite can use and a person who admits it. */
export interface AuthorizationStation {
  readonly server: { readonly issuer: string; readonly clientId: string; readonly port: number }
  /** Opens the link, signs in and consents. */
  visit(link: string): void
  close(): Promise<void>
}

/** Starts the daemon with its embedded authorization server, and registers the suite's redirect URI there. */
export const startAuthorizationStation = async (folder: string): Promise<AuthorizationStation> => {
  await mkdir(folder)
  const daemon = await startDaemon(folder, { builtin: 'demo' }, {}, { auth: { server: { signIn: ['token'] } } })
  const created = await promisify(execFile)(process.execPath, [
    ...[MAIN, 'token', 'create', 'ada', '--json', '--data', daemon.data],
  ])
  const { token } = JSON.parse(created.stdout) as { token: string }
  const port = await freePort()
  const registered = await fetch(`${daemon.origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Conformance', redirect_uris: [`http://127.0.0.1:${port}/callback`] }),
  })
  const { client_id } = (await registered.json()) as { client_id: string }
  const browser = createBrowser()
  const consent = async (link: string): Promise<void> => {
    const signIn = await browser.open(link)
    const page = await browser.submit(signIn, { token })
    await browser.submit(page, {}, 'Allow')
  }
  return {
    server: { issuer: daemon.origin, clientId: client_id, port },
    visit: link => void consent(link).catch(error => process.stderr.write(`The person cannot consent: ${error}\n`)),
    close: daemon.stop,
  }
}
