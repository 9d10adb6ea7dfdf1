import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ERRORS } from '../../protocol/errors.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { isModern } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import {
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  idKey,
  type Message,
  readIncoming,
} from '../../wire/json-rpc.ts'
import { LineDecoder } from '../../wire/ndjson.ts'
import { readError } from './recording-file.ts'
import { type RecordedServerScripts, ScriptChooser, type ServerStep } from './server-script.ts'

interface PipeOptions {
  readonly input: Readable
  readonly output: Writable
  readonly note: (text: string) => void
}

type RequestMessage = Extract<Message, { kind: 'request' }>

const MAX_LINE_BYTES = 64 * 1024 * 1024
const NEW_LINE = Buffer.from('\n')
const APART_MS = 5 // some clients drop a notification that comes with the response in one chunk

/** Serves the answers of a recorded server over a pipe, in its revision; resolves when the client has closed it. */
export const replayAsServer = (server: RecordedServerScripts, options: PipeOptions): Promise<void> =>
  new Promise(resolve => {
    const replay = new ServerReplay(server, options)
    const lines = new LineDecoder(line => replay.receive(line), { maxBytes: MAX_LINE_BYTES })
    options.input.on('data', (chunk: Buffer) => lines.feed(chunk))
    for (const event of ['end', 'close', 'error']) options.input.on(event, () => resolve())
  })

class ServerReplay {
  readonly #server: RecordedServerScripts
  readonly #options: PipeOptions
  readonly #chooser: ScriptChooser
  readonly #questions = new Map<string, () => void>() // that wait for an answer, by id
  #lastId = 0

  constructor(server: RecordedServerScripts, options: PipeOptions) {
    this.#server = server
    this.#options = options
    this.#chooser = new ScriptChooser(server.scripts)
  }

  receive(line: Buffer): void {
    let incoming: ReturnType<typeof readIncoming>
    try {
      incoming = readIncoming(line)
    } catch (error) {
      return this.#send(encodeError(undefined, { code: ERRORS.parse.code, message: (error as Error).message }))
    }
    for (const message of incoming.kind === 'batch' ? incoming.messages : [incoming]) this.#take(message)
  }

  #take(message: Message): void {
    if (message.kind === 'request') return void this.#answer(message)
    if ((message.kind === 'response' || message.kind === 'error') && message.id) {
      const key = idKey(message.id)
      this.#questions.get(key)?.()
      this.#questions.delete(key)
    }
  }

  async #answer({ id, method, params }: RequestMessage): Promise<void> {
    const script = this.#chooser.choose(method, params.toValue())
    if (!script) return this.#send(this.#unrecorded(id, method, params))
    const token = params.at('_meta', 'progressToken')
    for (const step of script.steps) await this.#play(step, id, token)
  }

  async #play({ kind, method, message }: ServerStep, id: Json, token: Json | undefined): Promise<void> {
    const params = message.get('params') ?? Json.empty
    switch (kind) {
      case 'notification':
        if (method !== NOTIFICATIONS.progress) this.#send(encodeNotification(method, params))
        else if (token) this.#send(encodeNotification(method, params.with('progressToken', token)))
        return sleep(APART_MS)
      case 'question':
        return this.#ask(method, params)
      case 'result':
        return this.#send(encodeResult(id, message.get('result') ?? Json.empty))
      case 'error':
        return this.#send(encodeError(id, readError(message.get('error') ?? Json.empty)))
    }
  }

  #ask(method: string, params: Json): Promise<void> {
    const id = `replay-${++this.#lastId}`
    return new Promise(resolve => {
      this.#questions.set(idKey(Json.of(id)), resolve)
      this.#send(encodeRequest(id, method, params))
    })
  }

  /** Answers what every server must answer, and tells what is recorded otherwise. */
  #unrecorded(id: Json, method: string, params: Json): Buffer[] {
    const { revision, scripts } = this.#server
    const identity = { name: `replay of ${this.#server.name}`, version: '1' }
    const capabilities = capabilitiesOf(scripts.map(script => script.method))
    if (method === 'ping') return encodeResult(id, Json.empty)
    if (method === 'initialize' && !isModern(revision))
      return encodeResult(id, Json.of({ protocolVersion: revision, capabilities, serverInfo: identity }))
    if (method === 'server/discover' && isModern(revision)) {
      const cached = { ttlMs: 0, cacheScope: 'private', resultType: 'complete' }
      return encodeResult(id, Json.of({ supportedVersions: [revision], capabilities, serverInfo: identity, ...cached }))
    }
    const list = LISTS[method]
    if (list) return encodeResult(id, Json.of({ [list.member]: list.items(namesIn(this.#server, list.of)) }))
    const known = scripts.filter(script => script.method === method).map(script => JSON.stringify(script.params))
    const recorded =
      known.length === 0 ? `the recording has no ${method}` : `recorded are ${known.slice(0, 5).join(', ')}`
    this.#options.note(`no recorded answer to ${method} ${params.toString().slice(0, 200)}: ${recorded}`)
    const isUnknown = known.length === 0
    const code = isUnknown ? ERRORS.methodNotFound.code : ERRORS.invalidParams.code
    return encodeError(id, { code, message: `The recording has no answer to ${method} with these params` })
  }

  #send(pieces: readonly Buffer[]): void {
    this.#options.output.write(Buffer.concat([...pieces, NEW_LINE]))
  }
}

const capabilitiesOf = (methods: readonly string[]) => ({
  tools: {},
  logging: {},
  ...(methods.some(method => method.startsWith('prompts/')) && { prompts: {} }),
  ...(methods.some(method => method.startsWith('resources/')) && { resources: {} }),
  ...(methods.includes('completion/complete') && { completions: {} }),
})

/** Lists that were not recorded have the items that were used, so that clients can use them again. */
const LISTS: Readonly<
  Record<string, { of: string; member: string; items: (names: readonly string[]) => readonly PlainObject[] }>
> = {
  'tools/list': {
    of: 'tools/call',
    member: 'tools',
    items: names => names.map(name => ({ name, inputSchema: { type: 'object' } })),
  },
  'prompts/list': { of: 'prompts/get', member: 'prompts', items: names => names.map(name => ({ name })) },
  'resources/list': { of: 'resources/read', member: 'resources', items: uris => uris.map(uri => ({ uri, name: uri })) },
  'resources/templates/list': { of: '', member: 'resourceTemplates', items: () => [] },
}

const namesIn = ({ scripts }: RecordedServerScripts, method: string): readonly string[] => {
  const params = scripts.flatMap(script => (script.method === method ? [script.params as Record<string, unknown>] : []))
  return [...new Set(params.map(({ name, uri }) => String(name ?? uri)))]
}
