import { resolve } from 'node:path'
import { type Client, createClientCommand } from './client/client-command.ts'
import type { Run } from './command.ts'
import { readRecordingFile } from './replay/recording-file.ts'
import { replayAsClient } from './replay/replay-client.ts'
import { isServerReplay, runServerReplay, SERVER_REPLAY_FLAGS } from './replay/server-command.ts'

const replayClient = createClientCommand({
  usage: ['replay FILE', 'replay URL FILE', 'replay FILE -- COMMAND…', 'replay FILE --as server'],
  about: `Plays back a file that the flight recorder has exported. As a client (the default), it sends the recorded requests again,
answers questions as they were answered then, and reports where results differ; the exit code is 1 if any does. As a
server, it answers over stdin and stdout, or at a port, as the recorded server did.`,
  examples: [
    ['dragoman replay recordings.jsonl', 'to the running daemon'],
    ['dragoman replay https://example.com/mcp recordings.jsonl', 'to a server at a URL'],
    ['dragoman replay recordings.jsonl -- node server.js', 'to a command'],
    ['dragoman replay recordings.jsonl --as server', 'as the server, over stdio'],
    ['dragoman replay recordings.jsonl --as server --port 8766', 'as the server, over HTTP'],
  ],
  flags: SERVER_REPLAY_FLAGS,
  words: [1, 1],
  hasServerWord: false,
  run: async (client: Client) => replayAsClient(client, await readRecordingFile(resolve(client.words[0] ?? ''))),
})

/** Plays back recordings. */
export const run: Run = (args, context) =>
  isServerReplay(args) ? runServerReplay(args, context) : replayClient(args, context)
