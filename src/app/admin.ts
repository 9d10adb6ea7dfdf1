import { createAdminRoutes } from '../admin/admin-routes.ts'
import type { ConsoleLink } from '../admin/api/session.ts'
import { createCallerFinder } from '../admin/callers.ts'
import { createClientEndpoints } from '../admin/client-endpoints.ts'
import type { ConfigEditorOptions } from '../admin/config-editor.ts'
import { createConfigEndpoints } from '../admin/config-endpoints.ts'
import type { AdminEndpoint } from '../admin/endpoints.ts'
import { createEventEndpoints, type EventFeed } from '../admin/event-feed.ts'
import { createGatewayEndpoints, type GatewayEndpointsOptions } from '../admin/gateway-endpoints.ts'
import { createLoginEndpoints } from '../admin/login-endpoints.ts'
import type { MemoryEndpointsOptions } from '../admin/memory-access.ts'
import { createMemoryEndpoints } from '../admin/memory-endpoints.ts'
import { describeEndpoints } from '../admin/openapi.ts'
import { createPinEndpoints, type PinEndpointsOptions } from '../admin/pin-endpoints.ts'
import { createRecorderEndpoints, type RecorderEndpointsOptions } from '../admin/recorder-endpoints.ts'
import { createServerEndpoints, type ServerEndpointsOptions } from '../admin/server-endpoints.ts'
import { createSessionEndpoints } from '../admin/session-endpoints.ts'
import { createTaskEndpoints, type TaskEndpointsOptions } from '../admin/task-endpoints.ts'
import { createTokenEndpoints } from '../admin/token-endpoints.ts'
import { RateWindow } from '../auth/rate-window.ts'
import type { HttpRoutes } from '../fronts/http/listen.ts'
import { clientAddressOf, quotaOwner } from '../protocol/admission.ts'
import { checkArguments } from '../servers/define/schema.ts'
import type { ConnectAdmin } from './connect-admin.ts'
import { type ConsoleSignInOptions, createConsoleSignIn } from './console-sign-in.ts'

interface AdminOptions extends GatewayEndpointsOptions, ConnectAdmin, ConsoleSignInOptions {
  readonly events: EventFeed
  readonly servers: ServerEndpointsOptions
  readonly recorder: RecorderEndpointsOptions
  readonly config: ConfigEditorOptions
  readonly memory: MemoryEndpointsOptions
  readonly tasks: TaskEndpointsOptions
  readonly pins: PinEndpointsOptions
}

interface Admin {
  readonly routes: HttpRoutes
  /** A link to the console that signs a browser in once, as the owner. */
  createLink(): ConsoleLink
}

/** The requests of one caller. A page sends a handful when it is shown, and one per action. */
const RATE = { perSecond: 100, burst: 400 }

/** The admin API: all its endpoints, and who may use them. */
export const createAdmin = (options: AdminOptions): Admin => {
  const { logins, tokens, clients, recorder, config, memory, servers, events, version, writeAudit, log } = options
  const signIn = createConsoleSignIn(options)
  const table: readonly AdminEndpoint[] = [
    ...createSessionEndpoints(signIn.endpoints),
    ...createGatewayEndpoints(options),
    ...createServerEndpoints(servers),
    ...createLoginEndpoints(logins),
    ...createTokenEndpoints(tokens),
    ...createClientEndpoints(clients),
    ...createRecorderEndpoints(recorder),
    ...createConfigEndpoints(config),
    ...createEventEndpoints(events),
    ...createMemoryEndpoints(memory),
    ...createTaskEndpoints(options.tasks),
    ...createPinEndpoints(options.pins),
  ]
  const description: AdminEndpoint = {
    method: 'GET',
    path: '/admin/openapi.json',
    access: 'viewer',
    summary: 'This document',
    run: () => document,
  }
  const endpoints = [...table, description]
  const document = describeEndpoints(endpoints, version)
  const rates = new RateWindow(RATE)
  const routes = createAdminRoutes({
    endpoints,
    findCaller: createCallerFinder(signIn.callers),
    limitRate: ({ principal }, request) => {
      const decision = rates.take(quotaOwner(principal, clientAddressOf(request)), Date.now(), false)
      return typeof decision === 'number' ? decision : undefined
    },
    checkBody: checkArguments,
    writeAudit,
    log,
  })
  return { routes, createLink: signIn.endpoints.createLink }
}
