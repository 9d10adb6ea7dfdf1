import type { ProcessServer } from '../../config/snapshot.ts'
import type { Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { Verdict } from './known-era.ts'
import { type Greeting, openProcess } from './open-process.ts'
import type { Pipe } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

interface OpenerOptions {
  readonly server: Pick<ProcessServer, 'era'> & { readonly name: string }
  readonly link: StdioLink
  readonly verdict: Verdict
  /** Takes a process that was started for a legacy session and turned out to be modern. */
  readonly adopt: (pipe: Pipe) => void
}

interface OpenedLegacy {
  readonly pipe: Pipe
  readonly greeting: Greeting
}

const OTHER: FailureDetails = {
  reason: 'upstream_protocol',
  text: 'answered in another protocol revision than before; send the call again',
}
const ANONYMOUS_CLIENT = { capabilities: Json.empty, info: undefined }

/** A process turned out to speak otherwise than the caller that started it had expected. */
export class OtherEra extends UpstreamFailure {}

/** Starts processes of one server in the era that is wanted, and records in the verdict what they speak. */
export const createOpeners = ({ server, link, verdict, adopt }: OpenerOptions) => {
  const openModern = async (signal: Signal): Promise<Pipe> => {
    const opened = await openProcess(link, ANONYMOUS_CLIENT, server.era === 'modern' ? 'modern' : undefined, signal)
    verdict.found(opened)
    if (opened.era === 'modern') return opened.pipe
    void opened.pipe.child.stop()
    throw new OtherEra(server.name, OTHER)
  }

  const openLegacy = async (caller: Caller, signal: Signal, promised: Greeting | undefined): Promise<OpenedLegacy> => {
    if (server.era === 'auto' && verdict.era === 'modern') return openLeg(caller, signal, promised)
    const opened = await openProcess(link, caller, promised ? 'legacy' : verdict.era, signal).catch(doubt)
    verdict.found(opened)
    if (opened.era === 'legacy' && keepsPromise(opened.greeting, promised)) return opened
    if (opened.era === 'modern') adopt(opened.pipe)
    else void opened.pipe.child.stop()
    throw new OtherEra(server.name, OTHER)
  }

  /** A modern server may take legacy sessions too, in a process whose first message is `initialize`. */
  const openLeg = async (caller: Caller, signal: Signal, promised: Greeting | undefined): Promise<OpenedLegacy> => {
    const { leg } = verdict
    const isTrial = leg.exists !== true
    const opened = await openProcess(link, caller, 'legacy', signal, isTrial).catch((error: unknown) => {
      const isRefusal = error instanceof UpstreamFailure && error.reason === 'upstream_protocol'
      if (signal.reason || !(isRefusal || isTrial)) throw error
      leg.missed(isRefusal)
      throw new OtherEra(server.name, OTHER)
    })
    if (opened.era === 'legacy') {
      verdict.foundLeg(opened.greeting)
      if (keepsPromise(opened.greeting, promised)) return opened
    }
    void opened.pipe.child.stop()
    throw new OtherEra(server.name, OTHER)
  }

  /** A server that fails as what it was may have become another: next time it is asked. */
  const doubt = (error: unknown): never => {
    const wasKnown = server.era === 'auto' && verdict.era !== undefined
    verdict.forget()
    const refuses = error instanceof UpstreamFailure && error.reason === 'upstream_protocol'
    throw wasKnown && refuses ? new OtherEra(server.name, OTHER) : error
  }

  return { openModern, openLegacy }
}

/** A process that is started again must be the server that its session was opened with. */
const keepsPromise = (greeting: Greeting, promised: Greeting | undefined): boolean =>
  !promised || promised.revision === greeting.revision
