import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGateway } from '../../../src/app/gateway.ts'
import { createSecret, createTokenId, hashSecret, type Token } from '../../../src/auth/token.ts'
import { changeTokens, tokenFilePath } from '../../../src/auth/token-file.ts'
import {
  type Auth,
  DEFAULT_LIMITS,
  DEFAULT_LISTEN,
  defaultRules,
  type Limits,
  type Listen,
  type ServerConfig,
  type Snapshot,
} from '../../../src/config/snapshot.ts'
import { createTestLog } from '../../support/log.ts'

interface Options {
  readonly auth?: Auth
  readonly listen?: Partial<Listen>
  readonly limits?: Partial<Limits>
  readonly insecure?: boolean
  readonly server?: Partial<ServerConfig>
  readonly policies?: Snapshot['policies']
  readonly data?: string
}

const DEMO: ServerConfig = { name: 'server', disabled: false, kind: 'builtin', builtin: 'demo' }

/** A token that has been created. */
export interface Created {
  readonly id: string
  readonly headers: { readonly authorization: string }
}

/** Creates a token in a data directory, as the command line does. */
export const createToken = async (data: string, more: Partial<Token> = {}): Promise<Created> => {
  const secret = createSecret()
  const id = createTokenId()
  const token = { id, name: 'test', principal: id, workspaces: ['*'], created: new Date().toISOString() }
  await changeTokens(tokenFilePath(data), tokens => [...tokens, { ...token, hash: hashSecret(secret), ...more }])
  return { id, headers: { authorization: `Bearer ${secret}` } }
}

export const newDataDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'dragoman-guarded-'))

/** A gateway on a port of its own with a data directory of its own: the demo behind `default` and `other`. */
export const startGuarded = async (options: Options = {}) => {
  const data = options.data ?? (await newDataDirectory())
  const { log, lines, saw } = createTestLog()
  const snapshot = {
    listen: { ...DEFAULT_LISTEN, port: 0, ...options.listen },
    auth: options.auth,
    limits: { ...DEFAULT_LIMITS, shutdownMs: 200, ...options.limits },
    servers: new Map([['server', { ...DEMO, ...options.server } as ServerConfig]]),
    workspaces: new Map(['default', 'other'].map(name => [name, { name, servers: ['server'], ...defaultRules(1) }])),
    policies: options.policies,
    warnings: [],
  }
  const gateway = await startGateway(snapshot, { log, data, insecure: options.insecure })

  /** Does something to the tokens and waits until the gateway has taken notice. */
  const noticed = async <T>(change: () => Promise<T>): Promise<T> => {
    const from = lines.length
    const result = await change()
    await saw(({ message }) => message === 'tokens read', from)
    return result
  }
  return {
    origin: `http://127.0.0.1:${gateway.port}`,
    url: `http://127.0.0.1:${gateway.port}/mcp`,
    other: `http://127.0.0.1:${gateway.port}/mcp/other`,
    data,
    lines,
    saw,
    gateway,
    create: (more?: Partial<Token>) => noticed(() => createToken(data, more)),
    revoke: ({ id }: Created) =>
      noticed(() => changeTokens(tokenFilePath(data), tokens => tokens.filter(token => token.id !== id))),
    close: async () => {
      await gateway.close()
      await rm(data, { recursive: true, force: true })
    },
  }
}

export type Guarded = Awaited<ReturnType<typeof startGuarded>>

/** What a POST is answered that has sent its headers and no more than the beginning of its body. */
export const answerToHalf = async (port: number, headers = ''): Promise<string> => {
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n${headers}content-length: 1000000\r\n\r\n{"jsonrpc":`,
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return answer.toString()
}

/** An open SSE channel; nobody looks at what arrives on it. */
export const openChannel = async (origin: string, headers: Created['headers']): Promise<IncomingMessage> => {
  const [response] = (await once(get(`${origin}/sse`, { agent: false, headers }), 'response')) as [IncomingMessage]
  return response.on('error', () => {}).resume()
}
