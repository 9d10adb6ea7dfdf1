import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { doctorText } from '../src/cli/doctor-text.ts'
import { type DoctorTarget, examine } from '../src/doctor/doctor.ts'
import { readVersion } from '../src/std/package.ts'
import { sleep } from '../src/std/time.ts'
import { startTestGateway } from '../test/support/gateway.ts'
import { scriptedServer } from '../test/support/scripted-server.ts'
import { freePort, startServerEverything } from '../test/support/server-everything.ts'
import { start as startSdkV1 } from '../test/support/servers/sdk-v1-server.ts'
import { start as startSdkV2 } from '../test/support/servers/sdk-v2-server.ts'
import { graphiti } from '../test/support/servers/seeds/graphiti.ts'
import { hub } from '../test/support/servers/seeds/hub.ts'
import { kulturarv } from '../test/support/servers/seeds/kulturarv.ts'
import { serena } from '../test/support/servers/seeds/serena.ts'

// Examines real servers and writes what `dragoman doctor` prints into docs/doctor.md: npx tsx scripts/write-doctor-page.ts
// Downloads mcp-proxy and supergateway with npx.

const PAGE = fileURLToPath(new URL('../docs/doctor.md', import.meta.url))
const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))
const BEGIN = '<!-- written by scripts/write-doctor-page.ts -->'
const START_MS = 60_000

interface Subject {
  readonly title: string
  readonly start: () => Promise<{ readonly target: DoctorTarget; close(): Promise<unknown> }>
}

const at = (url: string, close: () => Promise<unknown>) => ({
  target: { kind: 'remote', url: new URL(url), headers: {} } as const,
  close,
})

/** A program that listens on a port. */
const run = async (command: (port: number) => readonly string[], path: string) => {
  const port = await freePort()
  const [file = '', ...args] = command(port)
  const child = spawn(file, args, { stdio: 'ignore', detached: true })
  const url = `http://127.0.0.1:${port}${path}`
  const until = Date.now() + START_MS
  while (Date.now() < until && !(await isListening(url))) await sleep(250)
  return at(url, async () => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  })
}

const isListening = async (url: string): Promise<boolean> => {
  const leave = new AbortController()
  return fetch(url, { signal: leave.signal }).then(
    () => {
      leave.abort()
      return true
    },
    () => false,
  )
}

const NGINX_PAGE =
  '<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\n<center><h1>502 Bad Gateway</h1></center>\n<hr><center>nginx/1.22.1</center>\n</body>\n</html>\n'

const SUBJECTS: readonly Subject[] = [
  {
    title: 'The demo server of Dragoman',
    start: async () => startTestGateway().then(({ url, close }) => at(url, close)),
  },
  {
    title: 'A server on the TypeScript SDK, version 1',
    start: async () => startSdkV1().then(({ url, close }) => at(url, close)),
  },
  {
    title: 'A server on the TypeScript SDK, version 2',
    start: async () => startSdkV2().then(({ url, close }) => at(url, close)),
  },
  {
    title: '`server-everything` over stdio',
    start: async () => ({
      target: {
        kind: 'process',
        name: 'e',
        command: 'node',
        args: [EVERYTHING],
        env: {},
        cwd: undefined,
        era: 'auto',
        timeoutMs: 0,
      },
      close: async () => {},
    }),
  },
  {
    title: '`server-everything` over Streamable HTTP',
    start: async () => startServerEverything('streamableHttp').then(({ url, close }) => at(url, close)),
  },
  {
    title: '`server-everything` over HTTP+SSE',
    start: async () => startServerEverything('sse').then(({ url, close }) => at(url, close)),
  },
  {
    title: '`supergateway` in front of `server-everything`',
    start: () =>
      run(
        port => [
          'npx',
          '-y',
          'supergateway',
          '--stdio',
          `node ${EVERYTHING}`,
          '--port',
          `${port}`,
          '--outputTransport',
          'streamableHttp',
          '--stateful',
        ],
        '/mcp',
      ),
  },
  {
    title: '`mcp-proxy` in front of `server-everything`',
    start: () => run(port => ['npx', '-y', 'mcp-proxy', '--port', `${port}`, '--', 'node', EVERYTHING], '/mcp'),
  },
  {
    title: 'An agent memory that announces lists it does not have',
    start: async () => scriptedServer(graphiti().script).then(({ origin, close }) => at(`${origin}/mcp/`, close)),
  },
  {
    title: 'A daemon whose channel begins without an `endpoint` event',
    start: async () => serena().then(({ origin, close }) => at(`${origin}/sse`, close)),
  },
  {
    title: 'A server that wants a token',
    start: async () => kulturarv().then(({ origin, close }) => at(`${origin}/sse`, close)),
  },
  {
    title: 'A gateway without a handshake',
    start: async () => hub().then(({ origin, close }) => at(`${origin}/mcp/workspace`, close)),
  },
  {
    title: 'An error page of nginx',
    start: async () =>
      scriptedServer(
        (_, response) => void response.writeHead(502, { 'content-type': 'text/html' }).end(NGINX_PAGE),
      ).then(({ origin, close }) => at(`${origin}/mcp`, close)),
  },
]

/** Ports, folders and times differ with every run. */
const withoutAccidents = (text: string): string =>
  text
    .replaceAll(EVERYTHING, '…/server-everything/dist/index.js')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:3000')
    .replace(/^ {2}(handshake|latency)( +)\S+ ms/gm, '  $1$2… ms')

const parts: string[] = []
for (const { title, start } of SUBJECTS) {
  const { target, close } = await start()
  const report = await examine(target, { timeoutMs: 5000, version: readVersion() }).finally(close)
  process.stdout.write(`${title}: ${report.verdict}\n`)
  parts.push(`### ${title}\n\n\`\`\`text\n${withoutAccidents(doctorText(report))}\`\`\`\n`)
}
const [head = ''] = readFileSync(PAGE, 'utf8').split(BEGIN)
writeFileSync(PAGE, `${head}${BEGIN}\n\n${parts.join('\n')}`)
