import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { type HtmlPart, html } from '../http/html.ts'

/** One look for all pages that people see: light or dark as their system is, without scripts, images or fonts. */
const STYLE = html`<style>
:root{color-scheme:light dark;--page:#f4f4f1;--card:#fff;--text:#1b1d1c;--soft:#5d6461;--line:#dcdfdc;--accent:#176b52;--on-accent:#fff;--warn:#9a3412;--warn-page:#fff4ed}
@media (prefers-color-scheme:dark){:root{--page:#131615;--card:#1c201f;--text:#eceeec;--soft:#9ea7a3;--line:#343a38;--accent:#5cc9a2;--on-accent:#0d1f18;--warn:#fdba8c;--warn-page:#33211a}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem 1rem;background:var(--page);color:var(--text);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{width:100%;max-width:27rem;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:14px;overflow-wrap:anywhere}
main>:last-child{margin-bottom:0}
header{margin:0 0 1.5rem;color:var(--soft);font-size:.85rem;letter-spacing:.08em;text-transform:uppercase}
h1{margin:0 0 .75rem;font-size:1.4rem;line-height:1.3;font-weight:650}
p{margin:0 0 1rem}
.soft{color:var(--soft);font-size:.9rem}
.error{padding:.65rem .85rem;border-radius:8px;background:var(--warn-page);color:var(--warn)}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
dl{margin:1.25rem 0;border-top:1px solid var(--line)}
dl div{padding:.7rem 0;border-bottom:1px solid var(--line)}
dt{color:var(--soft);font-size:.85rem}
dd{margin:0}
ul{margin:.2rem 0 0;padding-left:1.1rem}
label{display:block;margin:0 0 .35rem;font-weight:600;font-size:.95rem}
input{width:100%;padding:.7rem .8rem;border:1px solid var(--line);border-radius:8px;background:var(--page);color:inherit;font:1rem ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
form{margin:0 0 1rem}
.button{display:block;width:100%;margin:.75rem 0 0;padding:.7rem 1rem;border:1px solid var(--line);border-radius:8px;background:transparent;color:inherit;font:inherit;font-weight:600;text-align:center;text-decoration:none;cursor:pointer}
.main{border-color:var(--accent);background:var(--accent);color:var(--on-accent)}
.text{display:inline;width:auto;margin:0;padding:0;border:0;background:none;color:var(--accent);font:inherit;text-decoration:underline;cursor:pointer}
.row{display:flex;gap:.75rem}
.or{display:flex;align-items:center;gap:.75rem;margin:1.25rem 0;color:var(--soft);font-size:.85rem}
.or::before,.or::after{content:"";flex:1;border-top:1px solid var(--line)}
a{color:var(--accent)}
.main:focus-visible,.button:focus-visible,.text:focus-visible,input:focus-visible,a:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
</style>`
const SHEET = String(STYLE).slice('<style>'.length, -'</style>'.length)
const STYLE_HASH = createHash('sha256').update(SHEET).digest('base64') // the only style that pages allow

/** A page of the gateway. */
export interface Page {
  readonly status: number
  readonly title: string
  readonly content: HtmlPart
  readonly refreshTo?: string | undefined // a path of the gateway, to which the browser goes at once
  /**
   * Where forms may lead to. Chrome applies it to every redirect that follows, also to those of the client: the consent page,
   * on which nothing is typed, must allow `anywhere`.
   */
  readonly forms: 'here' | 'anywhere'
}

const policyOf = ({ forms }: Page): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
    ...(forms === 'here' ? ["form-action 'self'"] : []),
  ].join('; ')

/** Sends a page that no other page can frame, and that is not stored. */
export const sendPage = (response: ServerResponse, page: Page, cookies: readonly string[] = []): void => {
  const { status, title, content, refreshTo } = page
  const refresh = refreshTo === undefined ? undefined : html`<meta http-equiv="refresh" content="0;url=${refreshTo}">`
  const text = `${html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${refresh}
<title>${title} · Dragoman</title>
${STYLE}
</head>
<body>
<main>
<header>Dragoman</header>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`}`
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'content-security-policy': policyOf(page),
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin', // with no-referrer, forms would be sent with `Origin: null`
    'cache-control': 'no-store',
    ...(cookies.length > 0 && { 'set-cookie': [...cookies] }),
  })
  response.end(text)
}
