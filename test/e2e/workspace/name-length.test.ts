import { expect, test } from 'vitest'
import { connectV1 } from '../../support/client-v1.ts'
import { createPinnedTools, toolOf } from '../../support/pinned-gateway.ts'

const LONG = 'create_a_pull_request_review_comment_on_a_file_of_a_branch'

test.each([
  ['prefix', ['files', 'demo'], /^files__[0-9a-f]{8}_[a-z_]+file_of_a_branch$/],
  ['plain', ['files'], /^files__[0-9a-f]{8}_[a-z_]+file_of_a_branch$/],
] as const)('names of style %s are as long as the workspace says, and stay callable', async (names, servers, shown) => {
  const { start, close } = await createPinnedTools({ tools: [toolOf('short'), toolOf(LONG)] })
  const { gateway, url } = await start({
    config: entry => ({
      mcpServers: { files: { ...entry, pin: false }, demo: { builtin: 'demo' } },
      workspaces: { default: { servers: [...servers], names, nameLength: 48 } },
    }),
  })
  const client = await connectV1({ url, capabilities: {} })
  try {
    const listed = await client.toolNames()
    expect(listed.every(({ length }) => length <= 48)).toBe(true)
    const long = listed.find(name => name.endsWith('file_of_a_branch')) ?? ''
    expect(long).toMatch(shown)
    for (const name of [long, LONG, `files__${LONG}`])
      expect(JSON.stringify((await client.call(name, {})).content)).toContain(LONG)
  } finally {
    await client.close()
    await gateway.close()
    await close()
  }
})
