/** The `_meta` keys of the specification, and our own. */
const SPEC = 'io.modelcontextprotocol/'

export const META = {
  protocolVersion: `${SPEC}protocolVersion`,
  clientInfo: `${SPEC}clientInfo`,
  clientCapabilities: `${SPEC}clientCapabilities`,
  logLevel: `${SPEC}logLevel`,
  serverInfo: `${SPEC}serverInfo`,
  subscriptionId: `${SPEC}subscriptionId`,
  relatedTask: `${SPEC}related-task`,
  affinity: 'dragoman/affinity',
  origin: 'dragoman/origin', // of an item shown under another name: its server, and what it is called there
  login: 'dragoman/login', // on the tool that starts a login, with why it cannot; on a result: the server, and the link to log in
  unavailable: 'dragoman/unavailable', // on a list: the servers it lacks
  allTools: 'dragoman/allTools', // in a request for a list, true: also tools that the budget leaves out; false: the list has their number here
  servers: 'dragoman/servers', // true in a request for a list: the list has the server of each of its items here
} as const

/** The members of a modern request that describe the client; removed for legacy servers. */
export const ENVELOPE: readonly string[] = [
  META.protocolVersion,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
]

/** The extension id under which 2026-07-28 knows tasks. */
export const TASKS_EXTENSION = `${SPEC}tasks`
