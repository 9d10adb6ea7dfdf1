import { expect, test } from 'vitest'
import type { RecordingSummary } from '../../../src/admin/api/recorder.ts'
import { describeConsole } from '../../support/console.ts'
import { createFakeRecorder, emitRecordings, fakeRecordings, recordingWith } from '../../support/recordings.ts'
import { expectNoPayloadRan, XSS_PAYLOADS } from '../../support/xss-corpus.ts'

describeConsole('hostile texts in recordings', site => {
  test('no payload runs: in rows, names, headers, texts, comparisons and filters', async () => {
    const recordings = XSS_PAYLOADS.map((payload, at) => ({
      ...recordingWith(`x${at}`, payload),
      id: `x${at}`,
      order: XSS_PAYLOADS.length - at,
      method: payload,
      error: payload,
    }))
    const rows: readonly RecordingSummary[] = recordings.map(({ all: _all, dropped: _dropped, ...row }) => row)
    const recorder = { ...createFakeRecorder(rows), recordings }
    const page = await site.openConsole('recorder', { prepare: own => fakeRecordings(own, recorder) })
    await page.getByRole('grid', { name: 'Exchanges' }).waitFor()
    await emitRecordings(page, rows)
    for (const key of ['j', 'Enter']) await page.keyboard.press(key)
    for (const [at, payload] of XSS_PAYLOADS.entries()) {
      await page.getByRole('heading', { level: 2 }).first().filter({ hasText: payload }).waitFor()
      if (at % 8 === 0)
        for (const view of ['Pretty', 'Raw', 'Headers', 'Compare'])
          for (const button of await page.getByRole('button', { name: view, exact: true }).all()) await button.click()
      await page.keyboard.press(']')
    }
    expect(await page.locator('main').textContent()).toContain(XSS_PAYLOADS.at(-1))
    await page.keyboard.press('Escape')
    await expectNoPayloadRan(page)
  }, 120_000)
})
