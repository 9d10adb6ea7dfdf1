// The process of the 2026-07-28 clients that are asked something: they park calls, and may come back with answers.
import { Agent, request as open } from 'node:http'
import { json } from 'node:stream/consumers'
import { serveJobs } from './jobs.ts'
import { MODERN } from './mcp-answers.ts'

/** Park that many calls, all at once; come back to all of them with answers; or never. */
export type ClientJob =
  | { readonly kind: 'park'; readonly url: string; readonly count: number }
  | { readonly kind: 'resume'; readonly url: string }
  | { readonly kind: 'abandon' }

interface Answer {
  readonly result?: {
    readonly resultType?: string
    readonly requestState?: string
    readonly inputRequests?: Readonly<Record<string, { readonly params?: { readonly message?: string } }>>
    readonly content?: readonly { readonly text?: string }[]
  }
}

interface Parked {
  readonly key: string // of the question
  readonly state: string
}

const parked = new Map<number, Parked>() // by the number of the call
let last = 0
let agent = new Agent({ keepAlive: true })

const HEADERS = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
  'MCP-Protocol-Version': MODERN,
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'ask',
}

const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'dragoman-bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
}

const call = (url: string, number: number, more: object): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const params = { name: 'ask', arguments: { number }, ...more, _meta: META }
    const request = open(url, { agent, method: 'POST', headers: HEADERS })
    request.once('error', reject)
    request.once('response', response => json(response).then(answer => resolve(answer as Answer), reject))
    request.end(JSON.stringify({ jsonrpc: '2.0', id: number, method: 'tools/call', params }))
  })

const park = async (url: string, number: number): Promise<void> => {
  const answer = await call(url, number, {})
  const [asked] = Object.entries(answer.result?.inputRequests ?? {})
  const state = answer.result?.requestState
  if (!asked || state === undefined || asked[1].params?.message !== `What about ${number}?`)
    throw new Error(`call ${number} was not asked its own question: ${JSON.stringify(answer).slice(0, 300)}`)
  parked.set(number, { key: asked[0], state })
}

const resume = async (url: string, number: number, { key, state }: Parked): Promise<boolean> => {
  const answer = `answer ${number * 7919}`
  const inputResponses = { [key]: { action: 'accept', content: { answer } } }
  const { result } = await call(url, number, { inputResponses, requestState: state })
  return result?.resultType === 'complete' && result.content?.[0]?.text === `${number}: ${answer}`
}

// A client that waits for a person holds no connection; nor may ours be counted as part of a parked call.
const hangUp = (): void => {
  agent.destroy()
  agent = new Agent({ keepAlive: true })
}

const work = async (job: ClientJob): Promise<number> => {
  if (job.kind === 'abandon') {
    parked.clear()
    return 0
  }
  if (job.kind === 'park') {
    await Promise.all(Array.from({ length: job.count }, () => park(job.url, ++last)))
    hangUp()
    return parked.size
  }
  const right = await Promise.all([...parked].map(([number, call]) => resume(job.url, number, call)))
  parked.clear()
  hangUp()
  return right.filter(Boolean).length
}

serveJobs(work)
