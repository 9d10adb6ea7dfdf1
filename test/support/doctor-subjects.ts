import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { doctorText } from '../../src/cli/doctor-text.ts'
import { type DoctorTarget, examine } from '../../src/doctor/doctor.ts'
import { readVersion } from '../../src/std/package.ts'
import { sleep } from '../../src/std/time.ts'
import { freePort } from './free-port.ts'
import { startTestGateway } from './gateway.ts'
import { scriptedServer } from './scripted-server.ts'
import { startServerEverything } from './server-everything.ts'
import { start as startSdkV1 } from './servers/sdk-v1-server.ts'
import { start as startSdkV2 } from './servers/sdk-v2-server.ts'
import { graphiti } from './servers/seeds/graphiti.ts'
import { hub } from './servers/seeds/hub.ts'
import { kulturarv } from './servers/seeds/kulturarv.ts'
import { serena } from './servers/seeds/serena.ts'

const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))
const START_MS = 60_000

interface DoctorSubject {
  readonly title: string
  /** Downloaded with npx. */
  readonly isDownloaded?: true
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
  const close = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  const until = Date.now() + START_MS
  while (Date.now() < until) {
    if (await isListening(url)) return at(url, close)
    await sleep(250)
  }
  await close()
  throw new Error(`${args.join(' ')} does not listen`)
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

/** The servers of docs/doctor.md, in its order. */
export const DOCTOR_SUBJECTS: readonly DoctorSubject[] = [
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
    isDownloaded: true,
    start: () =>
      run(
        port => [
          'npx',
          '-y',
          'supergateway@4.0.0',
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
    isDownloaded: true,
    start: () => run(port => ['npx', '-y', 'mcp-proxy@6.7.19', '--port', `${port}`, '--', 'node', EVERYTHING], '/mcp'),
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
    .replace('demo unknown', 'demo 0.1.0') // this gateway is not told its version
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:3000')
    .replace(/^ {2}(handshake|latency)( +)\S+ ms/gm, '  $1$2… ms')

/** Starts a server, examines it, and ends it: the section of docs/doctor.md about it. */
export const examineSubject = async ({ title, start }: DoctorSubject): Promise<string> => {
  const { target, close } = await start()
  const report = await examine(target, { timeoutMs: 5000, version: readVersion() }).finally(close)
  return `### ${title}\n\n\`\`\`text\n${withoutAccidents(doctorText(report))}\`\`\`\n`
}
