import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'
import {
  type Call,
  NOTHING,
  pause,
  type Schema,
  type ToolDefinition,
  text,
} from '../../support/servers/everything/define.ts'

/** An error code that no specification assigns; it must reach the client as the server sent it. */
const OWN_CODE = -32050
const NUMBERED = 150
const POLL_MS = 50
const POLLS = 100

const schema = (properties: Record<string, unknown>): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})

/** Enough tools for several pages: `numbered_001` to `numbered_150`. */
const numberedTools: readonly ToolDefinition[] = Array.from({ length: NUMBERED }, (_, index) => {
  const name = `numbered_${String(index + 1).padStart(3, '0')}`
  return { name, description: `Answers with ${name}`, inputSchema: NOTHING, run: () => text(name) }
})

/**
 * Tools that the demo server does not have. Calls write to the journal file, so that one process can
 * say what happened in another: the gateway decides how many processes it starts.
 */
export const extraTools = (journal: string): readonly ToolDefinition[] => [
  {
    name: 'big_result',
    description: 'Answers with this many characters',
    inputSchema: schema({ characters: { type: 'integer' } }),
    run: ({ arguments: { characters } }) => text('x'.repeat(Number(characters))),
  },
  {
    name: 'fail_with_code',
    description: `Fails with the JSON-RPC error code ${OWN_CODE}`,
    inputSchema: NOTHING,
    run: () => {
      throw new McpError(OWN_CODE, 'The quota is used up')
    },
  },
  {
    name: 'wait_for_cancel',
    description: 'Reports progress once, then waits until the client cancels the call',
    inputSchema: schema({ token: { type: 'string' } }),
    run: call => waitForCancel(journal, call),
  },
  {
    name: 'was_cancelled',
    description: 'Says whether the call of wait_for_cancel with this token was cancelled',
    inputSchema: schema({ token: { type: 'string' } }),
    run: ({ arguments: { token }, signal }) => wasCancelled(journal, String(token), signal),
  },
  ...numberedTools,
]

const waitForCancel = async (journal: string, { arguments: { token }, signal, progress }: Call) => {
  await progress(0, 1, 'waiting')
  signal.addEventListener('abort', () => appendFileSync(journal, `${String(token)}\n`), { once: true })
  await pause(60_000, signal)
  throw new McpError(ErrorCode.InternalError, 'The call was not cancelled')
}

const wasCancelled = async (journal: string, token: string, signal: AbortSignal) => {
  for (let poll = 0; poll < POLLS; poll += 1) {
    if (existsSync(journal) && readFileSync(journal, 'utf8').split('\n').includes(token)) return text('cancelled')
    await pause(POLL_MS, signal)
  }
  return text('not cancelled')
}
