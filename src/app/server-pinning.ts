import type { ServerConfig } from '../config/snapshot.ts'
import type { RpcError } from '../protocol/errors.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import type { PinStatus } from '../protocol/pins.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { pinUpstream, quarantineError } from '../safety/pinned-upstream.ts'
import type { ToolPins } from '../safety/tool-pins.ts'
import type { LoginParts } from './server-logins.ts'

/** The part of a server that knows about its pins. */
export interface ServerPinning {
  /** The server without the tools that are not approved. */
  readonly upstream: Upstream
  /** The error for a tool that is in quarantine for a caller; undefined: it is not. */
  quarantineOf(caller: Caller, tool: string): RpcError | undefined
}

/** Undefined for a server whose tools are not pinned. */
export const pinServer = (
  config: ServerConfig,
  upstream: Upstream,
  pins: ToolPins | undefined,
  logins: LoginParts | undefined,
): ServerPinning | undefined => {
  if (!config.pin || config.disabled || !pins) return undefined
  const ofServer = pins.of(config.name)
  /** Where each caller has credentials of its own, the list is that of its principal. */
  const isPersonal = (): boolean => {
    if (config.kind === 'embedded') return true // it is given the principal
    if ('personal' in config && config.personal !== undefined) return true
    return logins?.upstream.isPersonal === true && logins.upstream.demand.isKnown
  }
  const ownerOf = ({ principal }: Caller): string | undefined => (isPersonal() ? (principal ?? '') : undefined)
  return {
    upstream: pinUpstream(upstream, { pins: ofServer, ownerOf }),
    quarantineOf: (caller, tool) => {
      const list = ofServer.listOf(ownerOf(caller))
      return list.isQuarantined(tool) ? quarantineError(config.name, tool, list.hasApproved(tool)) : undefined
    },
  }
}

/** A server whose pins cannot be read has no tools, however healthy it is. */
export const withPins = (status: ServerStatus, pins: PinStatus | undefined): ServerStatus => {
  if (!pins) return status
  if (pins.fault === undefined || status.state !== 'ready') return { ...status, pins }
  return { ...status, pins, state: 'degraded', reason: `the pins of its tools cannot be read: ${pins.fault}` }
}
