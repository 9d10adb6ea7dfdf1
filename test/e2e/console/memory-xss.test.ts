import { expect, test } from 'vitest'
import type { MemoryGraph, MemoryTimeline } from '../../../src/protocol/memory-views.ts'
import { describeConsole } from '../../support/console.ts'
import { expectNoPayloadRan, XSS_PAYLOADS } from '../../support/xss-corpus.ts'

/** A memory stores no zero byte. */
const PAYLOADS = XSS_PAYLOADS.map(payload => payload.replaceAll('\0', ''))

describeConsole('hostile texts in a memory', site => {
  const headers = () => ({
    authorization: `Bearer ${site.gateway.localSecret}`,
    'content-type': 'application/json',
  })
  const post = async (path: string, body: string): Promise<void> => {
    const response = await fetch(`${site.origin}/admin/memory/${path}`, { method: 'POST', headers: headers(), body })
    expect([response.status, response.ok ? '' : await response.text()]).toEqual([200, ''])
  }
  const read = async <T>(path: string): Promise<T> =>
    (await (await fetch(`${site.origin}/admin/memory/${path}`, { headers: headers() })).json()) as T

  test('no payload runs: in names, facts, episodes, the graph, previews and the search', async () => {
    const lines = PAYLOADS.flatMap((payload, at) => [
      { type: 'entity', name: `${at} ${payload}`, entityType: payload, observations: [payload] },
      { type: 'relation', from: `${at} ${payload}`, to: 'Ann', relationType: payload },
    ])
    await post('import?name=hostile.jsonl', lines.map(line => JSON.stringify(line)).join('\n'))
    for (let at = 0; at < PAYLOADS.length; at += 4) {
      const name = PAYLOADS.slice(at, at + 4).join(' ')
      await post('episodes', JSON.stringify({ name, text: `${name}\nAnn wrote ${name} to Bob.` }))
    }
    const { nodes } = await read<MemoryGraph>('graph')
    const { items } = await read<MemoryTimeline>('timeline?kind=episode&limit=500')
    expect(nodes.length).toBeGreaterThan(PAYLOADS.length)

    const page = await site.openConsole('memory/timeline')
    const show = async (path: string, ready: string): Promise<void> => {
      await page.goto(`${site.origin}/#/memory/${path}`)
      await page.locator(ready).first().waitFor()
    }
    await page.locator('.timeline-item').first().waitFor()
    await show('graph', 'canvas[data-arranged]')
    await show('statistics', '.memory-figures')
    for (const { id, name } of nodes) {
      await show(`entity/${id}`, '.memory-head')
      await page
        .getByRole('heading', { level: 2 })
        .filter({ hasText: name.slice(0, 20) })
        .first()
        .waitFor()
    }
    for (const item of items) if (item.kind === 'episode') await show(`episode/${item.episode.id}`, '.memory-body')
    for (const payload of PAYLOADS.slice(0, 12)) {
      await page.getByRole('searchbox').fill(payload)
      await page.locator('.memory-results, .empty').first().waitFor()
    }
    await page.getByRole('button', { name: 'Import, export, forget' }).click()
    await page.getByRole('menuitem', { name: 'Forget…' }).click()
    await page.getByLabel('Name').fill('Ann')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.locator('.forget-plan').waitFor()
    for (const summary of await page.locator('.forget-plan summary').all()) await summary.click()
    await expectNoPayloadRan(page)
  }, 180_000)
})
