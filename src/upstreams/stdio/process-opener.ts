import type { ProcessServer } from '../../config/snapshot.ts'
import type { Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { Handshake } from '../session/handshake.ts'
import type { KnownEra } from './known-era.ts'
import { type OpenedProcess, openProcess } from './open-process.ts'
import type { Pipe } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

interface ProcessOpenerOptions {
  readonly server: Pick<ProcessServer, 'era'> & { readonly name: string }
  readonly link: StdioLink
  readonly known: KnownEra
  /** Takes a process that was started for a legacy session and turned out to be modern. */
  readonly adopt: (pipe: Pipe) => void
}

type OpenedLegacy = Extract<OpenedProcess, { era: 'legacy' }>

const OTHER_ERA: FailureDetails = {
  reason: 'upstream_protocol',
  text: 'answered in another protocol revision than before; send the call again',
}
const ANONYMOUS_CLIENT = { capabilities: Json.empty, info: undefined }

/** A process turned out to have another era than the one it was started for. */
export class WrongEra extends UpstreamFailure {
  constructor(server: string) {
    super(server, OTHER_ERA)
  }
}

/** Starts processes of one server in the era that is wanted, and records which era they have. */
export const createProcessOpener = ({ server, link, known, adopt }: ProcessOpenerOptions) => {
  const openModern = async (signal: Signal): Promise<Pipe> => {
    const opened = await openProcess(link, ANONYMOUS_CLIENT, server.era === 'modern' ? 'modern' : undefined, signal)
    known.detected(opened)
    if (opened.era === 'modern') return opened.pipe
    void opened.pipe.child.stop()
    throw new WrongEra(server.name)
  }

  /** `expected` is the handshake the session was opened with: a process of another revision does not replace it. */
  const openLegacy = async (caller: Caller, signal: Signal, expected: Handshake | undefined): Promise<OpenedLegacy> => {
    const isAlsoLegacy = server.era === 'auto' && known.era === 'modern'
    const opened = isAlsoLegacy
      ? await tryLegacy(caller, signal)
      : await openProcess(link, caller, expected ? 'legacy' : known.era, signal).catch(forgetEra)
    if (!isAlsoLegacy) known.detected(opened)
    else if (opened.era === 'legacy') known.legacyAccepted(opened.handshake)
    if (opened.era === 'legacy' && isSameRevision(opened.handshake, expected)) return opened
    if (opened.era === 'modern' && !isAlsoLegacy) adopt(opened.pipe)
    else void opened.pipe.child.stop()
    throw new WrongEra(server.name)
  }

  /** A modern server may accept legacy sessions too, in a process whose first message is `initialize`. */
  const tryLegacy = (caller: Caller, signal: Signal): Promise<OpenedProcess> => {
    const { legacy } = known
    const isTrial = legacy.isSupported !== true
    return openProcess(link, caller, 'legacy', signal, isTrial).catch((error: unknown) => {
      const isRefusal = error instanceof UpstreamFailure && error.reason === 'upstream_protocol'
      if (signal.reason || !(isRefusal || isTrial)) throw error
      legacy.deny(isRefusal)
      throw new WrongEra(server.name)
    })
  }

  /** A server that fails in its known era may have been replaced: the next process is probed. */
  const forgetEra = (error: unknown): never => {
    const wasKnown = server.era === 'auto' && known.era !== undefined
    known.forget()
    const isRefusal = error instanceof UpstreamFailure && error.reason === 'upstream_protocol'
    throw wasKnown && isRefusal ? new WrongEra(server.name) : error
  }

  return { openModern, openLegacy }
}

const isSameRevision = ({ revision }: Handshake, expected: Handshake | undefined): boolean =>
  !expected || expected.revision === revision
