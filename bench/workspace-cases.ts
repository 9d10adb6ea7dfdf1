import { calledNames, TOOLS } from './many-servers.ts'
import type { TimedCase } from './time-cases.ts'

/** One, twenty and two hundred servers in a workspace: one of them is called. */
export const SERVER_CASES: Readonly<Record<'1' | '20' | '200', TimedCase>> = {
  '1': { contestant: 'workspace-1', about: 'one server', tools: TOOLS, names: calledNames(1, 'one', 'prefix') },
  '20': {
    contestant: 'workspace-20',
    about: '20 servers, one is called',
    tools: TOOLS,
    names: calledNames(20, 'one', 'prefix'),
  },
  '200': {
    contestant: 'workspace-200',
    about: '200 servers, one is called',
    tools: TOOLS,
    names: calledNames(200, 'one', 'prefix'),
  },
}

/** The same workspaces, with their names as they are or with calls to many servers. */
export const WORKSPACE_CASES: Readonly<Record<string, TimedCase>> = {
  direct: {
    contestant: 'workspace-direct',
    about: 'one server, its names as they are',
    tools: TOOLS,
    names: calledNames(1, 'one', 'plain'),
  },
  ...SERVER_CASES,
  '20-all': {
    ...SERVER_CASES['20'],
    about: '20 servers, all are called',
    names: calledNames(20, 'all', 'prefix'),
  },
  '200-all': {
    ...SERVER_CASES['200'],
    about: '200 servers, 50 are called',
    names: calledNames(200, 'all', 'prefix'),
  },
}
