/** Turns this process into a worker: every message is a job, and its outcome is sent back. */
export const serveJobs = <J, R>(work: (job: J, fail: (error: Error) => void) => Promise<R>): void => {
  process.on('message', (job: J) => {
    const outcome = new Promise<R>((resolve, reject) => work(job, reject).then(resolve, reject))
    outcome.then(
      done => process.send?.({ done }),
      (error: Error) => process.send?.({ failure: error.message }),
    )
  })
  process.once('disconnect', () => process.exit())
}
