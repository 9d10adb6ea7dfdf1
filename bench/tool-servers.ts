/** A real server of a registry; it is only listed, so values that look like credentials are enough. */
export interface ListedServer {
  readonly package: string
  readonly registry: 'npm' | 'PyPI'
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const KEY = 'not-a-key'

/** The servers of the workspace in which tools are searched. */
export const SERVERS: Readonly<Record<string, ListedServer>> = {
  everything: { registry: 'npm', package: '@modelcontextprotocol/server-everything' },
  filesystem: { registry: 'npm', package: '@modelcontextprotocol/server-filesystem', args: ['.'] },
  memory: { registry: 'npm', package: '@modelcontextprotocol/server-memory' },
  thinking: { registry: 'npm', package: '@modelcontextprotocol/server-sequential-thinking' },
  github: {
    registry: 'npm',
    package: '@modelcontextprotocol/server-github',
    env: { GITHUB_PERSONAL_ACCESS_TOKEN: KEY },
  },
  gitlab: {
    registry: 'npm',
    package: '@modelcontextprotocol/server-gitlab',
    env: { GITLAB_PERSONAL_ACCESS_TOKEN: KEY },
  },
  slack: {
    registry: 'npm',
    package: '@modelcontextprotocol/server-slack',
    env: { SLACK_BOT_TOKEN: KEY, SLACK_TEAM_ID: 'T0' },
  },
  maps: { registry: 'npm', package: '@modelcontextprotocol/server-google-maps', env: { GOOGLE_MAPS_API_KEY: KEY } },
  brave: { registry: 'npm', package: '@modelcontextprotocol/server-brave-search', env: { BRAVE_API_KEY: KEY } },
  notion: { registry: 'npm', package: '@notionhq/notion-mcp-server', env: { NOTION_TOKEN: KEY } },
  playwright: { registry: 'npm', package: '@playwright/mcp' },
  devtools: { registry: 'npm', package: 'chrome-devtools-mcp' },
  sentry: { registry: 'npm', package: '@sentry/mcp-server', args: ['--access-token', KEY] },
  context7: { registry: 'npm', package: '@upstash/context7-mcp' },
  firecrawl: { registry: 'npm', package: 'firecrawl-mcp', env: { FIRECRAWL_API_KEY: KEY } },
  tavily: { registry: 'npm', package: 'tavily-mcp', env: { TAVILY_API_KEY: KEY } },
  exa: { registry: 'npm', package: 'exa-mcp-server', env: { EXA_API_KEY: KEY } },
  kubernetes: { registry: 'npm', package: 'mcp-server-kubernetes' },
  figma: { registry: 'npm', package: 'figma-developer-mcp', args: ['--stdio'], env: { FIGMA_API_KEY: KEY } },
  mongodb: { registry: 'npm', package: 'mongodb-mcp-server' },
  circleci: { registry: 'npm', package: '@circleci/mcp-server-circleci', env: { CIRCLECI_TOKEN: KEY } },
  chart: { registry: 'npm', package: '@antv/mcp-server-chart' },
  airtable: { registry: 'npm', package: 'airtable-mcp-server', env: { AIRTABLE_API_KEY: KEY } },
  eslint: { registry: 'npm', package: '@eslint/mcp' },
  time: { registry: 'PyPI', package: 'mcp-server-time' },
  git: { registry: 'PyPI', package: 'mcp-server-git' },
  fetch: { registry: 'PyPI', package: 'mcp-server-fetch' },
}
