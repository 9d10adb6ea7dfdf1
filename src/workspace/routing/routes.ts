import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { ListView } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import { createCompletionRoute } from './route-completion.ts'
import { createRouteContext, type RouteDeps } from './route-context.ts'
import { createNamedRoute } from './route-named.ts'
import { createLevelRoute, createOtherRoute } from './route-others.ts'
import { createResourceLocator, createResourceRoute, type LocateResource } from './route-resources.ts'

/** The ways through a workspace of several servers, or of one with rules. */
export interface Routes {
  readonly dispatch: Dispatch
  /** Which member a URI belongs to, without asking any of them. */
  readonly locate: LocateResource
}

/** Makes the routes of everything that is for one member; lists, discovery and listening are the catalogue's. */
export const createRoutes = (members: readonly Member[], shelves: ListView, deps: RouteDeps): Routes => {
  const context = createRouteContext(members, shelves, deps)
  const locate = createResourceLocator(context)
  const resources = createResourceRoute(context, locate)
  const routes: Readonly<Record<string, (exchange: Exchange) => void>> = {
    'tools/call': createNamedRoute(context, 'tools'),
    'prompts/get': createNamedRoute(context, 'prompts'),
    'resources/read': resources,
    'resources/subscribe': resources,
    'resources/unsubscribe': resources,
    'completion/complete': createCompletionRoute(context),
    'logging/setLevel': createLevelRoute(context),
  }
  const others = createOtherRoute(context, locate)
  const dispatch: Dispatch = exchange => {
    const route =
      exchange.kind === 'request' && Object.hasOwn(routes, exchange.method) ? routes[exchange.method] : others
    route?.(exchange)
  }
  return { dispatch, locate }
}
