import type { RequestHandler } from '../fronts/http/listen.ts'
import { PRIVATE_HEADERS } from '../fronts/http/response.ts'

// The page in which the console shows an MCP App: HTML of a server, whose scripts run. It has an origin of its own (`sandbox`
// without `allow-same-origin`), so it has no cookie, no storage and no way into the console; and it can load and send
// nothing, so that what a user enters goes only through the console. `frame-src` of the console keeps it from leaving.

const CONTENT_SECURITY_POLICY = [
  'sandbox allow-scripts',
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  'img-src data: blob:',
  'media-src data: blob:',
  'font-src data:',
  "connect-src 'none'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'self'",
].join('; ')

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), clipboard-read=(), display-capture=(), usb=()',
  'x-frame-options': 'SAMEORIGIN',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  ...PRIVATE_HEADERS,
}

/** Waits for the HTML of the app, once, from the page that has framed it. The policy of this document goes on. */
const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>App</title>
<script>
addEventListener('message', function take({ source, data }) {
  if (source !== parent || parent === window || typeof data?.html !== 'string') return
  removeEventListener('message', take)
  document.open()
  document.write(data.html)
  document.close()
})
parent.postMessage({ frame: 'ready' }, '*')
</script>
`

/** The address of the page, beside the files of the console. */
export const APP_FRAME_PATH = '/console/app'

export const serveAppFrame: RequestHandler = (_request, response) => void response.writeHead(200, HEADERS).end(PAGE)
