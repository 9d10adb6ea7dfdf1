import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from './in-process.ts'
import { endPrograms, startServe } from './program.ts'

let data: string
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'dragoman-console-command-'))
})
afterAll(async () => {
  await endPrograms()
  await rm(data, { recursive: true })
})

test('dragoman console prints a link that signs in as the owner, once', async () => {
  const none = await runCommand(['console', '--data', data])
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('start one with "dragoman serve"')])

  const daemon = await startServe(['--demo', '--port', '0', '--data', data])
  await daemon.saw(/^Console: http:\/\/127\.0\.0\.1:\d+\/$/m) // no link: the output is no terminal
  const printed = await runCommand(['console', '--print', '--data', data])
  expect(printed.code).toBe(0)
  expect(printed.stdout).toMatch(new RegExp(`^${daemon.origin}/#/overview\\?code=[\\w.-]{40,}\\n$`))
  const code = /code=(.+)\n$/.exec(printed.stdout)?.[1]
  const signIn = async () =>
    fetch(`${daemon.origin}/admin/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    })
  const first = await signIn()
  expect([first.status, await first.json()]).toEqual([200, expect.objectContaining({ role: 'owner' })])
  expect((await signIn()).status).toBe(401)

  const opened = await runCommand(['console', '--no-open', '--data', data])
  expect(opened.stdout).toMatch(
    /^Open http:\S+code=[\w-]+\nThe link signs you in as the owner, once, within ten minutes\.\n$/,
  )
  const browser = await runCommand(['console', '--data', data], { env: { BROWSER: process.execPath } })
  expect(browser.stdout).toMatch(/^Your browser opens http/)
})
