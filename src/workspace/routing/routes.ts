import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { ListView } from '../catalog/merged-lists.ts'
import type { Member } from '../member.ts'
import { createCompletionRoute } from './route-completion.ts'
import { createRouteContext, type RouteDeps } from './route-context.ts'
import { createNamedRoute } from './route-named.ts'
import { createLevelRoute, createOtherRoute } from './route-others.ts'
import { createResourceLocator, createResourceRoute } from './route-resources.ts'

/** Routes the methods that one member answers; others answer lists, `server/discover` and `subscriptions/listen`. */
export const createRoutes = (members: readonly Member[], lists: ListView, deps: RouteDeps) => {
  const context = createRouteContext(members, lists, deps)
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
