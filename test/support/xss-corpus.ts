import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** What each payload does if it runs: the page then has a mark, whatever the policy of the page reports. */
const RUN = 'globalThis.hacked=(globalThis.hacked||0)+1'

/** Texts that become code where a page takes text for HTML, for a URL, for a style or for a template. */
export const XSS_PAYLOADS: readonly string[] = [
  `<script>${RUN}</script>`,
  `<ScRiPt src="data:text/javascript,${RUN}"></sCrIpT>`,
  `</textarea><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `--><script>${RUN}</script><!--`,
  `]]><script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<img src=x:x onerror=${RUN}//`,
  `"><img src=x onerror=${RUN}>`,
  `'><img src=x onerror=${RUN}>`,
  `<svg onload="${RUN}">`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin="${RUN}" attributeName=x dur=1s>`,
  `<svg><a xlink:href="javascript:${RUN}"><text>x</text></a></svg>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--><img src=x onerror=${RUN}>">`,
  `<iframe src="javascript:parent.${RUN}"></iframe>`,
  `<iframe srcdoc="<script>parent.hacked=1</script>"></iframe>`,
  `<object data="javascript:${RUN}"></object>`,
  `<embed src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='${RUN}'/>">`,
  `<body onload="${RUN}">`,
  `<video><source onerror="${RUN}"></video>`,
  `<audio src=x onerror="${RUN}">`,
  `<details open ontoggle="${RUN}">x</details>`,
  `<input autofocus onfocus="${RUN}">`,
  `<select autofocus onfocus="${RUN}"><option>x</select>`,
  `<form action="javascript:${RUN}"><button autofocus>x</button></form>`,
  `<a href="javascript:${RUN}">x</a>`,
  `<base href="https://attacker.example/">`,
  `<meta http-equiv="refresh" content="0;url=javascript:${RUN}">`,
  `<link rel=stylesheet href="data:text/css,*{background:url(https://attacker.example/)}">`,
  `<style>@import "https://attacker.example/x.css";</style>`,
  `<div style="background:url(https://attacker.example/x)">x</div>`,
  `<marquee onstart="${RUN}">x</marquee>`,
  `<template><script>${RUN}</script></template>`,
  `[x](javascript:${RUN})`,
  `![x](https://attacker.example/x.png)`,
  `[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
  `<javascript:${RUN}>`,
  `javascript:${RUN}`,
  `data:text/html,<script>parent.hacked=1</script>`,
  `\u2028<script>${RUN}</script>\u2029`,
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `&lt;img src=x onerror=${RUN}&gt;`,
  `&#60;script&#62;${RUN}&#60;/script&#62;`,
  `\u202e<img src=x onerror=${RUN}>\u0000`,
]

const FORBIDDEN =
  'script:not([src]), iframe, object, embed, base[href*="attacker"], meta[http-equiv=refresh], svg a, svg animate, marquee'

/**
 * Checks that no payload has become an element or has run. Requests to other origins and violations of the policy fail the
 * test anyway (`describeConsole`).
 */
export const expectNoPayloadRan = async (page: Page): Promise<void> => {
  expect(await page.evaluate('globalThis.hacked')).toBeUndefined()
  expect(await page.locator(`body :is(${FORBIDDEN})`).count()).toBe(0)
  const found = await page.evaluate(`[...document.querySelectorAll('body *')].flatMap(element => [...element.attributes]
    .filter(({ name, value }) => /^on/i.test(name) || (/^(href|src|action|formaction|data)$/i.test(name) && /^\\s*(javascript|data:text|vbscript)/i.test(value)))
    .map(({ name, value }) => element.tagName + ' ' + name + '=' + value))`)
  expect(found).toEqual([])
}
