import type { RequestHandler } from '../fronts/http/listen.ts'
import { PRIVATE_HEADERS } from '../fronts/http/response.ts'

// The page in which the console shows an MCP App: HTML of a server, whose scripts run. It has an origin of its own (`sandbox`
// without `allow-same-origin`), so it has no cookie, no storage and no way into the console; and it can load and send
// nothing, so that what a user enters goes only through the console. `frame-src` of the console keeps it from leaving. No
// policy covers `preconnect`: the name of a host is all that an app can send.

const CONTENT_SECURITY_POLICY = [
  'sandbox allow-scripts',
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  'img-src data: blob:',
  'media-src data: blob:',
  'font-src data:',
  "connect-src 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types default',
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
  'x-dns-prefetch-control': 'off',
  'referrer-policy': 'no-referrer',
  ...PRIVATE_HEADERS,
}

/**
 * Waits for the HTML of the app, once, from the page that has framed it. The policy of this document goes on.
 *
 * No policy that browsers know covers WebRTC, so its constructors are removed before the app's code runs. A frame in the
 * app would have them again. Frames without a document have another opaque origin, so only `srcdoc` could use them: the default
 * policy of Trusted Types, which sees every HTML text, takes it out, in scripts too. Other policies are neither allowed nor offered.
 * A name in two parts would pass: `document.write` is removed, because the parser goes on where the last call ended, and
 * so are entities of XML. The app can replace the methods of strings and expressions, so none is looked up later.
 */
const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>App</title>
<script>
'use strict' // or the app could read these functions from the stack
{
  const { apply } = Reflect
  const { exec } = RegExp.prototype
  const { slice } = String.prototype
  const { write } = Document.prototype
  const blocked = /srcdoc|<!entity/gi
  const find = text => apply(exec, blocked, [text])
  const createHTML = (text, _type, sink) => {
    blocked.lastIndex = 0 // also if the last call has thrown
    if (find(sink)) return ''
    let kept = ''
    let from = 0
    for (let found = find(text); found; found = find(text)) {
      kept += apply(slice, text, [from, found.index]) + 'blocked'
      from = blocked.lastIndex
    }
    return kept + apply(slice, text, [from])
  }
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'XSLTProcessor']) delete globalThis[name]
  for (const name of ['write', 'writeln']) delete Document.prototype[name]
  globalThis.trustedTypes?.createPolicy('default', { createHTML, createScript: text => text, createScriptURL: url => url })
  delete globalThis.trustedTypes
  addEventListener('message', function take({ source, data }) {
    if (source !== parent || parent === window || typeof data?.html !== 'string') return
    removeEventListener('message', take)
    document.open()
    apply(write, document, [data.html])
    document.close()
  })
}
parent.postMessage({ frame: 'ready' }, '*')
</script>
`

/** The address of the page, beside the files of the console. */
export const APP_FRAME_PATH = '/console/app'

export const serveAppFrame: RequestHandler = (_request, response) => void response.writeHead(200, HEADERS).end(PAGE)
