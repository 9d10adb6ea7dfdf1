/** A notification as a client received it. */
export interface Notice {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** What a client has been told unasked. */
export interface Notices {
  take(notice: Notice): void
  /** Resolves with the oldest notice of this method that was not taken yet; waits for one where there is none. */
  next(method: string): Promise<Notice>
  /** Those of this method that nobody has taken. */
  pending(method: string): readonly Notice[]
}

/** An empty list of notices. */
export const createNotices = (): Notices => {
  const kept: Notice[] = []
  const waiting: { method: string; resolve: (notice: Notice) => void }[] = []
  return {
    take: notice => {
      const index = waiting.findIndex(({ method }) => method === notice.method)
      if (index >= 0) waiting.splice(index, 1)[0]?.resolve(notice)
      else kept.push(notice)
    },
    next: method => {
      const index = kept.findIndex(notice => notice.method === method)
      const [notice] = index >= 0 ? kept.splice(index, 1) : []
      return notice ? Promise.resolve(notice) : new Promise(resolve => waiting.push({ method, resolve }))
    },
    pending: method => kept.filter(notice => notice.method === method),
  }
}
