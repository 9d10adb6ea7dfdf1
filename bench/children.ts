import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Ready } from './contestant.ts'
import type { Target } from './peer.ts'

const children: ChildProcess[] = []

/** Lets `stopAll` end a process that ends when its channel closes. */
export const adopt = (child: ChildProcess): ChildProcess => {
  children.push(child)
  return child
}

export const start = (
  program: string,
  args: readonly string[] = [],
  execArgv: readonly string[] = process.execArgv,
): ChildProcess =>
  adopt(fork(fileURLToPath(new URL(`./${program}.js`, import.meta.url)), args, { execArgv: [...execArgv] }))

export const nextMessage = <T>(child: ChildProcess): Promise<T> =>
  new Promise((resolve, reject) => {
    const ended = (): void =>
      reject(
        new Error(
          `${child.spawnargs
            .slice(1)
            .map(arg => basename(arg))
            .join(' ')} ended early`,
        ),
      )
    child.once('exit', ended)
    child.once('message', message => {
      child.off('exit', ended)
      resolve(message as T)
    })
  })

export const startUpstream = (): Promise<Target> => nextMessage(start('upstream'))

export const startContestant = (name: string, upstream: Target): Promise<Ready> =>
  nextMessage(start('contestant', [name, upstream.url, String(upstream.pid)]))

/** A process that does one job at a time and fails with what it says went wrong. */
export const worker = <J extends object, R>(program: string): ((job: J) => Promise<R>) => {
  const child = start(program)
  return async job => {
    child.send(job)
    const outcome = await nextMessage<{ readonly done: R } | { readonly failure: string }>(child)
    if ('failure' in outcome) throw new Error(outcome.failure)
    return outcome.done
  }
}

/** Ends every process started here; each ends what it started itself when its channel closes. */
export const stopAll = async (): Promise<void> => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const ended = once(child, 'exit')
    child.disconnect()
    await ended
  }
}
