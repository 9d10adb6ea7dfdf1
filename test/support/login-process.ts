// One replica in a process of its own, for tests that kill it: `login-process.ts <database> <server URL>`.
// Each line on stdin is a number of calls to make at once; each line on stdout has their outcomes.
import { createInterface } from 'node:readline'
import { openLoginClient, remoteServer } from './login-caller.ts'
import { joinStore } from './login-store.ts'

const [location = '', serverUrl = ''] = process.argv.slice(2)
const store = await joinStore(location)
const { call } = openLoginClient(remoteServer(serverUrl), { store })
process.stdout.write(`ready ${store.members.self}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  const outcomes = await Promise.all(Array.from({ length: Number(line) }, () => call('ada')))
  process.stdout.write(
    `${JSON.stringify(outcomes.map(each => (each.kind === 'answered' ? each.status : each.kind)))}\n`,
  )
}
process.exit(0)
