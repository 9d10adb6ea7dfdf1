import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { ClientContext, Connect } from './client.ts'
import { callV1, connectV1Client, untilConnected } from './sdk-v1.ts'
import { callV2, connectV2Client } from './sdk-v2.ts'

const PROGRAM = fileURLToPath(new URL('../../../../dist/main.js', import.meta.url))

const commandOf = ({ data, workspace, run }: ClientContext) => ({
  command: process.execPath,
  args: [PROGRAM, 'stdio', '--data', data, '--config', join(data, '../config.json'), '--workspace', workspace],
  env: { PATH: process.env.PATH ?? '', DRAGOMAN_DATA: data, CHAOS_RUN: run },
  stderr: 'ignore' as const,
})

/** SDK v1 before `dragoman stdio`. */
export const connectPipeV1: Connect = async context => {
  const client = await untilConnected(() => connectV1Client(new StdioV1(commandOf(context))))
  return {
    call: call => callV1(client, context, call),
    whyDead: async () => undefined,
    close: () => client.close(),
  }
}

/** SDK v2 before `dragoman stdio`. */
export const connectPipeV2: Connect = async context => {
  const client = await untilConnected(() => connectV2Client(new StdioV2(commandOf(context))))
  return {
    call: call => callV2(client, context, call),
    whyDead: async () => undefined,
    close: () => client.close(),
  }
}
