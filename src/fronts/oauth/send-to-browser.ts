import type { ServerResponse } from 'node:http'
import type { BrowserResponse } from '../../protocol/sign-in.ts'
import { PRIVATE_HEADERS } from '../http/response.ts'
import { sendPage } from './page-layout.ts'
import { connectedClientsPage, consentPage, continuePage, messagePage, signInPage } from './pages.ts'

/** Sends a browser what a page of the gateway decided. */
export const sendToBrowser = (response: ServerResponse, { cookies = [], ...result }: BrowserResponse): void => {
  if (result.kind === 'sign-in') return sendPage(response, signInPage(result.page), cookies)
  if (result.kind === 'consent') return sendPage(response, consentPage(result.page), cookies)
  if (result.kind === 'clients') return sendPage(response, connectedClientsPage(result.page), cookies)
  if (result.kind === 'message') return sendPage(response, messagePage(result.page), cookies)
  if (result.kind === 'continue') return sendPage(response, continuePage(result.to, result.visitor), cookies)
  response.writeHead(303, {
    location: result.to,
    'content-length': 0,
    'referrer-policy': 'no-referrer',
    ...PRIVATE_HEADERS,
    ...(cookies.length > 0 && { 'set-cookie': [...cookies] }),
  })
  response.end()
}
